"""The ports of a server, as its API shows them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.compute.servers.states import TaskState, VmState
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


def test_security_groups_of_a_network_that_has_none(cloud: Cloud) -> None:
    uuid = cloud.alice.booted()
    path = f"/servers/{uuid}/os-security-groups"
    for version in ("2.1", "2.36", "latest"):
        assert cloud.rita.get(path, version) == {"security_groups": []}
    assert "could not be found" in cloud.bob.refused(404, "GET", path)
    assert "could not be found" in cloud.alice.refused(404, "GET", f"/servers/{ABSENT}/os-security-groups")


# ---------------------------------------------------------------- one more, one fewer: what is refused


def bare(cloud: Cloud, **columns: Any) -> str:
    """A server of Alice's that runs without a port."""
    uuid = cloud.alice.booted(networks="none")
    cloud.run(uuid, node_uuid="cccccccc-0000-4000-8000-000000000001", **columns)
    return uuid


def attach(**wanted: Any) -> dict[str, Any]:
    return {"interfaceAttachment": wanted}


@pytest.mark.parametrize(
    ("wanted", "status", "words"),
    [
        ({"port_id": ABSENT}, 404, f"Port {ABSENT} could not be found"),
        ({"net_id": ABSENT}, 404, f"Network {ABSENT} could not be found"),
        ({"net_id": NETWORK, "port_id": ABSENT}, 400, "Must not input both"),
        ({"fixed_ips": [{"ip_address": "10.64.0.9"}]}, 400, "Must input network_id"),
        ({"net_id": NETWORK, "fixed_ips": [{"ip_address": "10.64.0.9"}]}, 400, "can't be chosen"),
        ({"net_id": NETWORK, "fixed_ips": []}, 400, "fixed_ips"),
        ({"net_id": NETWORK, "fixed_ips": [{"ip_address": "nonsense"}]}, 400, "nonsense"),
        ({"net_id": "nonsense"}, 400, "nonsense"),
        ({"net_id": NETWORK, "tag": "a,b"}, 400, "tag"),
        ({"net_id": NETWORK, "colour": "red"}, 400, "colour"),
    ],
)
def test_what_can_not_be_attached_is_refused_and_changes_nothing(
    cloud: Cloud, wanted: dict[str, Any], status: int, words: str
) -> None:
    uuid = bare(cloud)
    assert words in cloud.alice.refused(status, "POST", f"/servers/{uuid}/os-interface", attach(**wanted))
    assert cloud.operations(uuid) == [("build", None)]
    assert cloud.server(uuid).task_state is None


def test_tags_came_with_a_later_version(cloud: Cloud) -> None:
    path, body = f"/servers/{bare(cloud)}/os-interface", attach(net_id=NETWORK, tag="front")
    assert "tag" in cloud.alice.refused(400, "POST", path, body, "2.48")


@pytest.mark.parametrize(
    "columns",
    [
        {"vm_state": VmState.BUILDING},
        {"vm_state": VmState.ERROR},
        {"vm_state": VmState.RESIZED},
        {"task_state": TaskState.REBOOTING},
        {"locked_by": "admin"},
    ],
)
def test_a_server_that_has_something_else_to_do_keeps_the_ports_that_it_has(
    cloud: Cloud, columns: dict[str, Any]
) -> None:
    uuid, expected = with_port(cloud)
    cloud.run(uuid, node_uuid="cccccccc-0000-4000-8000-000000000001", **columns)
    path = f"/servers/{uuid}/os-interface"
    cloud.alice.refused(409, "POST", path, attach())
    cloud.alice.refused(409, "DELETE", f"{path}/{expected['port_id']}")
    assert cloud.operations(uuid) == [("build", None)]


def test_a_second_port_of_the_pool_is_refused(cloud: Cloud) -> None:
    uuid, _ = with_port(cloud)
    cloud.run(uuid, node_uuid="cccccccc-0000-4000-8000-000000000001")
    refusal = cloud.alice.refused(400, "POST", f"/servers/{uuid}/os-interface", attach(net_id=NETWORK))
    assert "one port" in refusal


def test_a_port_that_the_server_has_not_is_not_detached(cloud: Cloud) -> None:
    path = f"/servers/{bare(cloud)}/os-interface/{ABSENT}"
    assert f"Port id {ABSENT} could not be found" in cloud.alice.refused(404, "DELETE", path)


def test_only_members_of_the_project_attach_and_detach(cloud: Cloud) -> None:
    uuid, expected = with_port(cloud)
    path = f"/servers/{uuid}/os-interface"
    for who, status in ((cloud.rita, 403), (cloud.bob, 404)):
        who.refused(status, "POST", path, attach())
        who.refused(status, "DELETE", f"{path}/{expected['port_id']}")


def test_detaching_is_accepted_and_written_down(cloud: Cloud) -> None:
    uuid, expected = with_port(cloud)
    cloud.run(uuid, node_uuid="cccccccc-0000-4000-8000-000000000001")
    path = f"/servers/{uuid}/os-interface/{expected['port_id']}"
    for _ in range(2):
        answer = cloud.alice.call("DELETE", path)
        assert (answer.status_code, answer.text) == (202, "")
    assert cloud.operations(uuid)[1:] == [("detach_interface", None)] * 2
    assert cloud.woken


# ---------------------------------------------------------------- addresses, as older clients ask for them


def test_addresses_come_and_go_by_older_versions_of_the_api(cloud: Cloud) -> None:
    uuid, _ = with_port(cloud)
    cloud.run(uuid, node_uuid="cccccccc-0000-4000-8000-000000000001")
    path = f"/servers/{uuid}/action"
    add, remove = {"addFixedIp": {"networkId": NETWORK}}, {"removeFixedIp": {"address": "10.64.0.9"}}
    for body in (add, remove):
        cloud.alice.refused(404, "POST", path, body, "2.44")
        assert cloud.alice.call("POST", path, body, version="2.43").status_code == 202
    assert [kind for kind, _ in cloud.operations(uuid)] == ["build", "add_address", "remove_address"]


def test_an_address_that_the_server_has_not_is_told_at_once(cloud: Cloud) -> None:
    uuid, _ = with_port(cloud)
    cloud.run(uuid, node_uuid="cccccccc-0000-4000-8000-000000000001")
    path = f"/servers/{uuid}/action"
    for body in ({"addFixedIp": {"networkId": ABSENT}}, {"removeFixedIp": {"address": "10.64.0.10"}}):
        assert "could not be found" in cloud.alice.refused(400, "POST", path, body, "2.43")
    assert cloud.operations(uuid) == [("build", None)]
