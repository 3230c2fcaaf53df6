"""What tempest.conf says of the cloud. By this alone Tempest skips tests: none is left out by name."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.tempest.cloud import HOSTS, PUBLIC, Cloud
from tests.lab.keystone.settings import REGION
from tests.support.profiles import Settings

_PATIENCE = "600"
"""Seconds: the machine may be busy."""

_THERE = (
    *(
        "block_migration_for_live_migration",
        "change_password",
        "cold_migration",
        "console_output",
        "hostname_fqdn_sanitization",
    ),
    *("live_migrate_back_and_forth", "live_migration", "pause", "personality", "rescue", "resize", "shelve"),
    *("shelve_migrate", "snapshot", "suspend"),
)
_FILTERS = (
    *("ComputeFilter", "DifferentHostFilter", "ImagePropertiesFilter", "SameHostFilter"),
    *("ServerGroupAffinityFilter", "ServerGroupAntiAffinityFilter"),
)
_MISSING = {
    "metadata_service": "guests are simulated: none of them asks",
    "stable_rescue": "guests are simulated: they have no disks",
    "serial_console": "the test of Tempest 47 sends text where only bytes can be: it fails on any cloud",
    "spice_console": "no driver has it",
    "vnc_console": "guests are simulated: they have no screens",
    "volume_backed_live_migration": "there is no Cinder",
    "volume_multiattach": "there is no Cinder",
    "swap_volume": "there is no Cinder",
    "attach_encrypted_volume": "there is no Cinder",
    "unified_limits": "quotas are kept here",
    "vtpm_live_migration": "there is no Barbican",
}

_SUBPORTS = {"trunk", "trunk-details"}
"""Neutron lets them be made, but its simulated hosts don't plug them."""


OLDEST = "2.39"
"""Before it, Compute was a proxy to Glance and Neutron, too, which ours is not."""


def settings(cloud: Cloud, directory: Path, oldest: str = OLDEST) -> Settings:
    """`oldest` is the microversion at which tests run that don't ask for a newer one."""
    lab = cloud.lab
    admin = lab.keystone.admin
    return {
        "DEFAULT": {"log_file": str(directory / "tempest.log"), "debug": "true"},
        "oslo_concurrency": {"lock_path": str(directory / "locks")},
        "identity": {"uri_v3": lab.keystone.url, "region": REGION},
        "auth": {
            "admin_username": admin.name,
            "admin_password": admin.password,
            "admin_project_name": admin.project,
        },
        "service_available": {"cinder": "false", "swift": "false", "horizon": "false"},
        "enforce_scope": {"nova": "true"},
        "validation": {"run_validation": "false"},
        "compute": {
            "image_ref": cloud.images[0],
            "image_ref_alt": cloud.images[1],
            "flavor_ref": cloud.flavors[0],
            "flavor_ref_alt": cloud.flavors[1],
            "min_compute_nodes": str(len(HOSTS)),
            "min_microversion": oldest,
            "max_microversion": "latest",
            "build_timeout": _PATIENCE,
        },
        "compute-feature-enabled": {
            **dict.fromkeys(_THERE, "true"),
            **dict.fromkeys(_MISSING, "false"),
            "nova_policy_roles": "admin,manager,member,reader,service",
            "scheduler_enabled_filters": ",".join(_FILTERS),
        },
        "placement": {"min_microversion": "1.0", "max_microversion": "latest"},
        "image": {"build_timeout": "120"},  # one test waits so long for a state that is over already
        "network": {
            "public_network_id": cloud.public_network,
            "floating_network_name": PUBLIC,
            "build_timeout": _PATIENCE,
        },
        "network-feature-enabled": {
            "api_extensions": ",".join(set(cloud.network_extensions) - _SUBPORTS),
            "floating_ips": "false",  # Compute's actions for them, which ended with 2.43
        },
    }
