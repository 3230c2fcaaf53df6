"""Neutron's OVN metadata agent on hosts of the libvirt lab: it signs what guests ask 169.254.169.254."""

from __future__ import annotations

from pathlib import Path

from tests.lab.libvirt.hosts import LibvirtHost
from tests.lab.openstack.environment import OPENSTACK
from tests.lab.ovn.central import OvnCentral
from tests.support import debian
from tests.support.profiles import Settings, ini

_SUDO = """\
#!/bin/sh
while case $1 in -*) true;; *) false;; esac; do shift; done
exec "$@"
"""
# The agent asks for rights that whoever runs the lab has already.


def install() -> None:
    """`debian.Unavailable` if something is missing that we may not install."""
    debian.install("haproxy", "iptables", "ethtool")


def start(host: LibvirtHost, central: OvnCentral, service_port: int, secret: str) -> None:
    """It ends with the host. The metadata service listens on a port of the host's loopback."""
    directory = host.directory / "metadata"
    for place in (directory, directory / "bin", directory / "lock"):
        place.mkdir()
    sudo = directory / "bin" / "sudo"
    sudo.write_text(_SUDO)
    sudo.chmod(0o755)
    config = directory / "agent.ini"
    config.write_text(ini(_settings(host, directory, central, service_port, secret)))
    path = f"PATH={directory / 'bin'}:{OPENSTACK.bin()}:/usr/sbin:/usr/bin:/sbin:/bin"
    program = OPENSTACK.bin() / "neutron-ovn-metadata-agent"
    host.start(["env", path, program, "--config-file", config], directory / "agent.out")


def namespace_of(network_id: str) -> str:
    """Where the agent serves a network from: operators reach guests from there."""
    return f"ovnmeta-{network_id}"


def _settings(
    host: LibvirtHost, directory: Path, central: OvnCentral, service_port: int, secret: str
) -> Settings:
    return {
        "DEFAULT": {
            "host": host.name,
            "log_file": str(directory / "agent.log"),
            "state_path": str(directory),
            "nova_metadata_host": "127.0.0.1",
            "nova_metadata_port": str(service_port),
            "metadata_proxy_shared_secret": secret,
            "metadata_workers": "1",
        },
        "ovn": {"ovn_nb_connection": central.northbound, "ovn_sb_connection": central.southbound},
        "ovs": {"ovsdb_connection": "unix:/run/openvswitch/db.sock"},
        "agent": {"root_helper": ""},
        "oslo_concurrency": {"lock_path": str(directory / "lock")},
    }
