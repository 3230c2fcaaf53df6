"""The configurations that the reference's behaviour suites ask for, by name.

Each suite expects the service in one of them; the same names select the same behaviour in the
reference and in ours, so that one runner judges both.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

Settings = dict[str, dict[str, str]]


class Profile(StrEnum):
    DEFAULT = "default"
    LEGACY_RBAC = "legacy-rbac"
    SECURE_RBAC = "secure-rbac"
    OPEN_POLICY = "open-policy"
    CORS = "cors"


def policy_settings(profile: Profile, policy_file: str) -> Settings:
    """What both services spell alike: policy and CORS come from the same libraries."""
    settings: Settings = {
        "oslo_policy": {
            "policy_file": policy_file,
            "enforce_new_defaults": str(profile is Profile.SECURE_RBAC).lower(),
            "enforce_scope": "true",
        }
    }
    if profile is Profile.CORS:
        settings["cors"] = {
            "allowed_origin": "http://valid.example.com",
            "allow_headers": "openstack-api-version",
        }
    return settings


def policy_text(profile: Profile, rules: Mapping[str, object] | list[str]) -> str:
    """The policy file: every rule open to anybody, or nothing overridden."""
    if profile is not Profile.OPEN_POLICY:
        return "{}\n"
    return "".join(f'"{name}": "@"\n' for name in rules)


def ini(settings: Settings) -> str:
    lines = []
    for section, options in settings.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {value}" for name, value in options.items()]
    return "\n".join(lines) + "\n"
