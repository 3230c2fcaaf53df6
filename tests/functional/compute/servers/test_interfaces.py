"""The ports of a server, as its API shows them."""

from __future__ import annotations

from typing import Any

from moorage.network.pool import mac_of, port_of
from tests.functional.compute.servers.conftest import ABSENT, NETWORK, Cloud


def with_port(cloud: Cloud) -> tuple[str, dict[str, Any]]:
    """A server of Alice's with one port, and what is to be seen of it."""
    uuid = cloud.alice.booted()
    port = {
        "id": port_of(uuid),
        "network_id": NETWORK,
        "network_name": "private",
        "ours": True,
        "mac": mac_of(uuid),
        "addresses": ["10.64.0.9"],
        "tag": "front",
    }
    cloud.run(uuid, request={**cloud.server(uuid).request, "ports": [port]})
    return uuid, {
        "net_id": NETWORK,
        "port_id": port_of(uuid),
        "mac_addr": mac_of(uuid),
        "port_state": "ACTIVE",
        "fixed_ips": [{"subnet_id": NETWORK, "ip_address": "10.64.0.9"}],
    }


def test_interfaces_are_listed_and_shown(cloud: Cloud) -> None:
    uuid, expected = with_port(cloud)
    path = f"/servers/{uuid}/os-interface"
    assert cloud.alice.get(path, "2.69") == {"interfaceAttachments": [expected]}
    assert cloud.alice.get(path) == {"interfaceAttachments": [{**expected, "tag": "front"}]}
    shown = cloud.rita.get(f"{path}/{expected['port_id']}", "2.1")
    assert shown == {"interfaceAttachment": expected}


def test_a_server_without_ports_has_no_interfaces(cloud: Cloud) -> None:
    uuid = cloud.alice.booted(networks="none")
    assert cloud.alice.get(f"/servers/{uuid}/os-interface") == {"interfaceAttachments": []}


def test_what_is_not_there_or_not_one_s_own_is_not_found(cloud: Cloud) -> None:
    uuid, expected = with_port(cloud)
    path = f"/servers/{uuid}/os-interface"
    assert "could not be found" in cloud.alice.refused(404, "GET", f"{path}/{ABSENT}")
    assert "could not be found" in cloud.alice.refused(404, "GET", f"/servers/{ABSENT}/os-interface")
    assert "could not be found" in cloud.bob.refused(404, "GET", f"{path}/{expected['port_id']}")
