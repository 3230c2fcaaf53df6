"""A flavor in Nova's words, turned into the query that its servers would make."""

from __future__ import annotations

from urllib.parse import urlencode

from moorage.cli.errors import CommandError

_CLASSES = {"vcpus": "VCPU", "ram": "MEMORY_MB", "disk": "DISK_GB"}
EXAMPLE = "vcpus=4,ram=8192,disk=40,trait:HW_CPU_X86_AVX2=required"


def query(flavor: str) -> str:
    """The query for `flavor`: vcpus, ram (MB), disk (GB), and `resources:` and `trait:` as in extra specs."""
    resources: dict[str, str] = {}
    traits: list[str] = []
    for part in filter(None, (part.strip() for part in flavor.split(","))):
        key, _, value = part.partition("=")
        if key in _CLASSES:
            resources.setdefault(_CLASSES[key], _amount(key, value))
        elif key.startswith("resources:"):
            resources[key.removeprefix("resources:")] = _amount(key, value)
        elif key.startswith("trait:") and value in ("required", "forbidden"):
            traits.append(("!" if value == "forbidden" else "") + key.removeprefix("trait:"))
        else:
            raise CommandError(f"can't read {part!r} in a flavor; for example: {EXAMPLE}")
    parameters = [
        ("resources", ",".join(f"{name}:{amount}" for name, amount in resources.items() if amount != "0"))
    ]
    if traits:
        parameters.append(("required", ",".join(traits)))
    return urlencode(parameters, safe=":,!")


def _amount(key: str, value: str) -> str:
    if not value.isdigit():
        raise CommandError(f"{key} needs a whole number, not {value!r}")
    return value
