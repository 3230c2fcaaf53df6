"""How the Nova of the tests is configured: all of it in one directory, and its Placement at any address."""

from __future__ import annotations

from pathlib import Path

from tests.lab.keystone.service import Keystone, Person
from tests.lab.openstack.settings import credentials
from tests.support.profiles import Settings

DRIVER = "fake.MediumFakeDriver"
"""Ten processors and eight gigabytes; servers can be resized to another host."""
REPORT_INTERVAL = 2
SERVICE_DOWN_TIME = 60


def databases(urls: dict[str, str]) -> Settings:
    """For all services but those on hosts, which have no database."""
    return {"api_database": {"connection": urls["api"]}, "database": {"connection": urls["cell"]}}


def nova(directory: Path, bus: str, placement: str, keystone: Keystone, person: Person) -> Settings:
    """For all its services; each adds the name of its host."""
    itself = credentials(keystone, person)
    return {
        "DEFAULT": {
            "state_path": str(directory),
            "transport_url": bus,
            "compute_driver": DRIVER,
            "report_interval": str(REPORT_INTERVAL),
            "service_down_time": str(SERVICE_DOWN_TIME),
            "update_resources_interval": "5",
            "shutdown_timeout": "1",
            "default_log_levels": "amqp=WARNING,oslo=WARNING,oslo.messaging=WARNING,sqlalchemy=WARNING",
        },
        "quota": {"instances": "-1", "cores": "-1", "ram": "-1"},
        "wsgi": {"api_paste_config": str(directory / "api-paste.ini")},
        "conductor": {"workers": "1"},
        "scheduler": {"workers": "1", "discover_hosts_in_cells_interval": "2"},
        "keystone_authtoken": {"www_authenticate_uri": keystone.url, **itself},
        "placement": {"auth_type": "admin_token", "token": "admin", "endpoint": placement},
        "neutron": itself,
        "glance": itself,
        "cinder": itself,
        "service_user": {"send_service_user_token": "true", **itself},
        "oslo_concurrency": {"lock_path": str(directory / "lock")},
        "oslo_messaging_notifications": {"driver": "noop"},
        "vnc": {"enabled": "false"},
    }
