"""How the Ironic of the tests is configured: fake hardware, quick, and all of it in one directory."""

from __future__ import annotations

from pathlib import Path

from tests.support.profiles import Settings

_INTERFACES = {
    "bios": "no-bios",
    "boot": "fake",
    "console": "fake,fake-graphical,lab",
    "deploy": "fake,lab",
    "firmware": "no-firmware",
    "inspect": "no-inspect",
    "management": "fake,lab",
    "network": "noop,flat",
    "power": "fake",
    "raid": "no-raid",
    "rescue": "fake,lab,no-rescue",
    "storage": "noop",
    "vendor": "no-vendor",
}
PAGE = "2"
"""No list is longer: whoever wants all of it has to ask for the next page."""


def common(directory: Path, database_url: str, api_port: int, deploy_delay: int) -> Settings:
    """For the API and all conductors. `deploy_delay` is in seconds, for each call of the deploy interface."""
    return {
        "DEFAULT": {
            "auth_strategy": "noauth",
            "rpc_transport": "json-rpc",
            "use_stderr": "true",
            "state_path": str(directory),
            "tempdir": str(directory),
            "hash_ring_reset_interval": "2",
            "enabled_hardware_types": "fake-hardware",
            **{f"enabled_{kind}_interfaces": name for kind, name in _INTERFACES.items()},
            "default_network_interface": "noop",
            "default_storage_interface": "noop",
        },
        "api": {"host_ip": "127.0.0.1", "port": str(api_port), "max_limit": PAGE},
        "json_rpc": {"auth_strategy": "noauth", "port": "8089"},
        "database": {"connection": database_url},
        "conductor": {
            "heartbeat_interval": "3",
            "heartbeat_timeout": "15",
            "sync_power_state_interval": "0",
            "automated_clean": "true",
            "graceful_shutdown_timeout": "2",
            "file_url_allowed_paths": str(directory),
        },
        "fake": {"deploy_delay": str(deploy_delay), "rescue_delay": str(deploy_delay)},
        "dhcp": {"dhcp_provider": "none"},
        "service_catalog": {"auth_type": "none", "endpoint_override": f"http://127.0.0.1:{api_port}"},
        "deploy": {"http_root": str(directory / "httpboot")},
        "oslo_concurrency": {"lock_path": str(directory / "lock")},
        "oslo_messaging_notifications": {"driver": "noop"},
    }


def conductor(group: str, address: str) -> Settings:
    """Each has a loopback address of its own, all on the default port: with another port a conductor locks
    nodes under another name than it registers, and its locks outlive it."""
    return {
        "DEFAULT": {"host": address},
        "conductor": {"conductor_group": group},
        "json_rpc": {"host_ip": address},
    }
