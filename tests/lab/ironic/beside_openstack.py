"""An Ironic beside a real Keystone, Neutron and Glance: machines boot by PXE, on networks of Neutron's."""

from __future__ import annotations

from tests.lab.openstack.service import OpenStack
from tests.lab.openstack.settings import authtoken, credentials
from tests.support.profiles import Settings

OWN_NETWORK = "provisioning"
"""The network of Neutron's on which Ironic itself works on machines."""


class OpenStackBeside:
    def __init__(self, lab: OpenStack) -> None:
        self._lab = lab
        self._person = lab.keystone.add_person("ironic", "service", "service", "admin")
        self.token = lab.keystone.token(self._person)

    def known_to(self, alone: Settings) -> Settings:
        itself = credentials(self._lab.keystone, self._person)
        directory = alone["DEFAULT"]["state_path"]
        networks = {f"{use}_network": OWN_NETWORK for use in ("cleaning", "provisioning", "rescuing")}
        general = {
            **alone["DEFAULT"],
            "auth_strategy": "keystone",
            "rbac_service_role_elevated_access": "true",
            "enabled_boot_interfaces": "fake,pxe",
            "enabled_deploy_interfaces": "fake,ramdisk",
            "enabled_network_interfaces": "noop,flat,neutron",
        }
        return {
            **alone,
            "DEFAULT": general,
            "keystone_authtoken": authtoken(self._lab.keystone, self._person),
            "neutron": {**itself, **networks, "fail_on_port_binding_failure": "true"},
            "glance": itself,
            "service_catalog": {**itself, **alone["service_catalog"], "auth_type": "password"},
            "dhcp": {"dhcp_provider": "neutron"},
            "pxe": {
                "tftp_root": f"{directory}/tftpboot",
                "tftp_master_path": f"{directory}/tftpboot/master",
                "images_path": f"{directory}/images",
                "instance_master_path": f"{directory}/images/master",
            },
        }
