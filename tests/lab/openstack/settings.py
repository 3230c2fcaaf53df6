"""How the Neutron and the Glance of the tests are configured: real drivers, no message bus, one directory."""

from __future__ import annotations

from pathlib import Path

from tests.lab.keystone.service import Keystone, Person
from tests.lab.keystone.settings import REGION
from tests.lab.ovn.central import OvnCentral
from tests.support.profiles import Settings

PHYSICAL_NETWORKS = tuple(f"physnet{number}" for number in range(4))
_SIMULATED = ",simulated_hosts.SimulatedHosts"
_PLUGINS = f"segments,router,qos,trunk,placement,tag,network_ip_availability,auto_allocate{_SIMULATED}"
PAGE = "2"
"""No list of Neutron's or Glance's is longer: whoever wants all of it has to ask for the next page."""
_UNLIMITED = ("network", "subnet", "router", "floatingip", "security_group", "security_group_rule")


def credentials(keystone: Keystone, person: Person) -> dict[str, str]:
    return {"auth_type": "password", "region_name": REGION, **person.auth(keystone.url)}


def authtoken(keystone: Keystone, person: Person) -> dict[str, str]:
    return {
        "www_authenticate_uri": keystone.url,
        "service_token_roles": "service",
        "service_token_roles_required": "true",
        **credentials(keystone, person),
    }


def glance(
    directory: Path, database_url: str, url: str, keystone: Keystone, person: Person, page: str
) -> Settings:
    return {
        "DEFAULT": {
            "log_file": str(directory / "glance.log"),
            "transport_url": "fake://",
            "enabled_backends": "file:file",
            "worker_self_reference_url": url,
            "limit_param_default": page,
            "api_limit_max": page,
        },
        "database": {"connection": database_url},
        "glance_store": {"default_backend": "file"},
        **{
            section: {"filesystem_store_datadir": str(directory / section)}
            for section in ("file", "os_glance_staging_store", "os_glance_tasks_store")
        },
        "paste_deploy": {"flavor": "keystone", "config_file": str(directory / "glance-api-paste.ini")},
        "oslo_concurrency": {"lock_path": str(directory)},
        "oslo_messaging_notifications": {"driver": "noop"},
        "keystone_authtoken": authtoken(keystone, person),
    }


def neutron(
    directory: Path,
    database_url: str,
    keystone: Keystone,
    person: Person,
    page: str,
    ovn: OvnCentral | None = None,
) -> Settings:
    """With simulated hosts, or with those that have OVN."""
    found = _neutron(directory, database_url, keystone, person, page)
    return found if ovn is None else _with_ovn(found, ovn)


def _with_ovn(found: Settings, ovn: OvnCentral) -> Settings:
    plugins = _PLUGINS.replace("router", "ovn-router").removesuffix(_SIMULATED)
    ml2 = {
        **found["ml2"],
        "type_drivers": "flat,vlan,geneve,local",
        "tenant_network_types": "geneve",
        "mechanism_drivers": "ovn",
    }
    return {
        **found,
        "DEFAULT": {**found["DEFAULT"], "service_plugins": plugins},
        "ml2": ml2,
        "ml2_type_geneve": {"vni_ranges": "1:1000", "max_header_size": "38"},
        "ovn": {
            "ovn_nb_connection": ovn.northbound,
            "ovn_sb_connection": ovn.southbound,
            "ovn_metadata_enabled": "true",
            "ovn_emit_need_to_frag": "false",
        },
    }


def _neutron(directory: Path, database_url: str, keystone: Keystone, person: Person, page: str) -> Settings:
    ranges = ",".join(f"{name}:100:199" for name in PHYSICAL_NETWORKS)
    return {
        "DEFAULT": {
            "log_file": str(directory / "neutron.log"),
            "state_path": str(directory),
            "core_plugin": "ml2",
            "service_plugins": _PLUGINS,
            "api_paste_config": str(directory / "neutron-paste.ini"),
            "transport_url": "fake://",
            "notify_nova_on_port_status_changes": "true",
            "notify_nova_on_port_data_changes": "true",
            "send_events_interval": "1",
            "enable_traditional_dhcp": "false",
            "dns_domain": "cloud.example.",
            "pagination_max_limit": page,
        },
        "database": {"connection": database_url, "max_pool_size": "20", "max_overflow": "40"},
        "oslo_concurrency": {"lock_path": str(directory)},
        "oslo_messaging_notifications": {"driver": "noop"},
        "quotas": {f"quota_{name}": "-1" for name in _UNLIMITED},
        "ml2": {
            "type_drivers": "flat,vlan,vxlan,local",
            "tenant_network_types": "vxlan",
            "mechanism_drivers": "openvswitch,simulated_switches",
            "extension_drivers": "port_security,qos,dns_domain_ports",
        },
        "ml2_type_flat": {"flat_networks": "*"},
        "ml2_type_vlan": {"network_vlan_ranges": ranges},
        "ml2_type_vxlan": {"vni_ranges": "1:1000"},
        "nova": credentials(keystone, person),
        "placement": credentials(keystone, person),
        "keystone_authtoken": authtoken(keystone, person),
    }
