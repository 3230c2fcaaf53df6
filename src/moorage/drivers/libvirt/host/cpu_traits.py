"""Processor features of guests as traits."""

from __future__ import annotations

from collections.abc import Collection, Mapping

_X86 = "HW_CPU_X86_"
_SPELT_ALIKE = (
    *("avx", "avx2", "f16c", "fma4", "mmx", "sse", "sse2", "ssse3", "sse4a", "xop", "3dnow"),
    *("abm", "bmi2", "tbm", "mpx", "sgx", "pdpe1gb", "stibp"),
    *(f"avx512{part}" for part in ("f", "cd", "pf", "er", "vl", "bw", "dq", "vnni", "vbmi", "ifma")),
    *("avx512vbmi2", "avx512bitalg"),
)
_SPELT_OTHERWISE: Mapping[str, tuple[str, ...]] = {
    "pclmuldq": ("CLMUL",),
    "fma": ("FMA3",),
    "pni": ("SSE3",),
    "sse4.1": ("SSE41",),
    "sse4.2": ("SSE42",),
    "bmi1": ("BMI",),
    "aes": ("AESNI",),
    "sha-ni": ("SHA",),
    "rtm": ("TSX",),
    "vaes": ("AVX512VAES",),
    "gfni": ("AVX512GFNI",),
    "vpclmulqdq": ("AVX512VPCLMULQDQ",),
    "avx512-vpopcntdq": ("AVX512VPOPCNTDQ",),
    "amx-bf16": ("AMXBF16",),
    "amx-int8": ("AMXINT8",),
    "amx-tile": ("AMXTILE",),
    "vmx": ("VMX", "INTEL_VMX"),
    "svm": ("SVM", "AMD_SVM"),
    "ibpb": ("AMD_IBPB",),
    "amd-no-ssb": ("AMD_NO_SSB",),
    "amd-ssbd": ("AMD_SSBD",),
    "virt-ssbd": ("AMD_VIRT_SSBD",),
    "md-clear": ("INTEL_MD_CLEAR",),
    "pcid": ("INTEL_PCID",),
    "spec-ctrl": ("INTEL_SPEC_CTRL",),
    "ssbd": ("INTEL_SSBD",),
}
_TRAITS = {name: (name.upper(),) for name in _SPELT_ALIKE} | dict(_SPELT_OTHERWISE)
"""By libvirt's name of a feature."""


def of_features(features: Collection[str]) -> set[str]:
    """Of the features that there are traits for."""
    return {f"{_X86}{trait}" for feature in features for trait in _TRAITS.get(feature, ())}
