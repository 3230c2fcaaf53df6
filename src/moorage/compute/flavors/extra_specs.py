"""What extra specs mean, so that a mistyped one is refused when it is written and not when a server fails.

Only namespaces that are known are checked; anything else is somebody else's, and passes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from moorage.compute.errors import ComputeError

_BOOLEAN = r"(?i:1|t|true|on|y|yes|0|f|false|off|n|no)"
_NUMBER = r"\d+"
_CPU_SET = r"\^?\d+(-\d+)?(,\^?\d+(-\d+)?)*"
_ANY = r".*"

_SPECS: Mapping[str, Mapping[str, str]] = {
    "accel": {"device_profile": _ANY},
    "hw": {
        "boot_menu": _BOOLEAN,
        "cdrom_bus": _ANY,
        "cpu_cores": _NUMBER,
        "cpu_dedicated_mask": _CPU_SET,
        "cpu_max_cores": _NUMBER,
        "cpu_max_sockets": _NUMBER,
        "cpu_max_threads": _NUMBER,
        "cpu_policy": "dedicated|shared|mixed",
        "cpu_realtime": _BOOLEAN,
        "cpu_realtime_mask": _CPU_SET,
        "cpu_sockets": _NUMBER,
        "cpu_thread_policy": "prefer|isolate|require",
        "cpu_threads": _NUMBER,
        "disk_bus": _ANY,
        "emulator_threads_policy": "isolate|share",
        "ephemeral_encryption": _BOOLEAN,
        "ephemeral_encryption_format": "plain|luks|luksv2",
        "hide_hypervisor_id": _BOOLEAN,
        "locked_memory": _BOOLEAN,
        "machine_type": _ANY,
        "maxphysaddr_bits": _NUMBER,
        "maxphysaddr_mode": "passthrough|emulate",
        "mem_encryption": _BOOLEAN,
        "mem_encryption_model": "amd-sev|amd-sev-es|amd-sev-snp|intel-tdx",
        "mem_page_size": r"(large|small|any)|\d+([kKMGT]i?)?(b|bit|B)?",
        "numa_nodes": _NUMBER,
        r"numa_cpus\.\d+": _CPU_SET,
        r"numa_mem\.\d+": _NUMBER,
        "pci_numa_affinity_policy": "required|preferred|legacy|socket",
        "pmem": _ANY,
        "pmu": _BOOLEAN,
        "redirected_usb_ports": _NUMBER,
        "rescue_bus": _ANY,
        "serial_port_count": _NUMBER,
        "sound_model": "sb16|es1370|pcspk|ac97|ich6|ich9|usb|virtio",
        "tpm_model": "tpm-tis|tpm-crb",
        "tpm_secret_security": "user|host|deployment",
        "tpm_version": r"1\.2|2\.0",
        "usb_model": "none|nec-xhci|qemu-xhci",
        "vif_multiqueue_enabled": _BOOLEAN,
        "viommu_model": "intel|smmuv3|virtio|auto",
        "virtio_packed_ring": _BOOLEAN,
        "watchdog_action": "none|pause|poweroff|reset|disabled",
    },
    "hw_rng": {"allowed": _BOOLEAN, "rate_bytes": _NUMBER, "rate_period": _NUMBER},
    "hw_video": {"ram_max_mb": _NUMBER},
    "os": {"secure_boot": "disabled|optional|required", "vnc_keymap": _ANY},
    "pci_passthrough": {"alias": r"[^:]+:\d+(,[^:]+:\d+)*"},
    "quota": {
        **dict.fromkeys(
            ("cpu_limit", "cpu_period", "cpu_quota", "cpu_reservation", "cpu_shares_share"), r"-?\d+"
        ),
        "cpu_shares": _NUMBER,
        "cpu_shares_level": "custom|high|normal|low",
        r"disk_(read|write|total)_(bytes|iops)_sec(_max)?": _NUMBER,
        r"(disk_io|memory|vif)_(limit|reservation|shares_share)": r"-?\d+",
        r"(disk_io|memory|vif)_shares_level": "custom|high|normal|low",
        r"vif_(in|out)bound_(average|peak|burst)": _NUMBER,
    },
    r"resources(_?[a-zA-Z0-9_-]{1,64})?": {"[A-Z0-9_]+": _NUMBER},
    r"trait(_?[a-zA-Z0-9_-]{1,64})?": {"[A-Z0-9_]+": "required|forbidden"},
}
_BARE: Mapping[str, str] = {"group_policy": "none|isolate", "hide_hypervisor_id": _BOOLEAN}


def check(name: str, value: str) -> None:
    """Raise an error if a known namespace does not know this name, or the name this value."""
    namespace, colon, rest = name.partition(":")
    if not colon:
        known: Mapping[str, str] | None = {name: _BARE[name]} if name in _BARE else None
        rest = name
    else:
        known = next((specs for spelt, specs in _SPECS.items() if re.fullmatch(spelt, namespace)), None)
    if known is None:
        return
    form = next((form for spelt, form in known.items() if re.fullmatch(spelt, rest)), None)
    if form is None:
        raise ComputeError(
            f"Validation failed; extra spec '{name}' does not appear to be a valid extra spec."
        )
    if not re.fullmatch(form, value):
        raise ComputeError(f"Validation failed; '{value}' is not a valid value for extra spec '{name}'.")
