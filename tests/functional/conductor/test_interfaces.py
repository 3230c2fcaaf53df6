"""Ports that come and go while their server is there: whatever fails, and whoever dies in between."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.conductor.ports.refreshing import Refreshing
from moorage.db.tables.compute import operations
from moorage.network.contract import PortRecord, ServerPorts
from moorage.network.pool import PoolNetwork, PoolSettings, network_of, port_of
from tests.functional.conductor.conftest import Make
from tests.functional.conductor.harbour import Harbour
from tests.support.processes import wait_until

NETWORK = network_of("private")


class Piers:
    """What a test does with the interfaces of servers."""

    def __init__(self, harbour: Harbour) -> None:
        self.harbour = harbour
        self.api = harbour.cloud.api

    def attach(self, uuid: str, status: int = 200, version: str = "2.96", **wanted: Any) -> Any:
        reply = self.api.simulate_post(
            f"/v2.1/servers/{uuid}/os-interface",
            json={"interfaceAttachment": wanted},
            headers={"openstack-api-version": f"compute {version}"},
        )
        assert reply.status_code == status, reply.text
        (found,) = reply.json.values()
        return found

    def detach(self, uuid: str, port_id: str, status: int = 202) -> None:
        reply = self.api.simulate_delete(f"/v2.1/servers/{uuid}/os-interface/{port_id}")
        assert reply.status_code == status, reply.text

    def listed(self, uuid: str) -> list[str]:
        found = self.harbour.cloud.get(f"/v2.1/servers/{uuid}/os-interface")["interfaceAttachments"]
        return [interface["port_id"] for interface in found]

    def on_host(self, uuid: str) -> set[str]:
        """The ports that the server has where it runs."""
        (copy,) = self.harbour.copies(uuid).values()
        return set(copy.interfaces)

    def has(self, uuid: str, *port_ids: str) -> None:
        """The same to the host, to the API, and in the pool's books."""
        self.harbour.settled(uuid, "ACTIVE", "SHUTOFF")
        assert self.on_host(uuid) == set(port_ids)
        assert self.listed(uuid) == list(port_ids)
        assert bool(self.harbour.addresses(uuid)) == bool(port_ids)
        assert self.harbour.cloud.addressed() == ({uuid} if port_ids else set())

    def actions(self, uuid: str) -> list[tuple[str, str | None]]:
        """The oldest first."""
        found = self.harbour.cloud.get(f"/v2.1/servers/{uuid}/os-instance-actions")["instanceActions"]
        return [(action["action"], action["message"]) for action in reversed(found)]


def piers(harbour: Make, **options: object) -> Piers:
    return Piers(harbour(hosts=1, **options))


def test_a_port_comes_and_goes(harbour: Make) -> None:
    site = piers(harbour)
    uuid = site.harbour.running(networks="none")
    site.has(uuid)
    attached = site.attach(uuid, net_id=NETWORK, tag="front")
    assert attached["port_id"] == port_of(uuid)
    assert (attached["net_id"], attached["port_state"], attached["tag"]) == (NETWORK, "ACTIVE", "front")
    assert len(attached["fixed_ips"]) == 1
    site.has(uuid, port_of(uuid))
    site.detach(uuid, port_of(uuid))
    site.has(uuid)
    assert site.actions(uuid)[1:] == [("attach_interface", None), ("detach_interface", None)]


def test_the_network_need_not_be_named_and_the_server_need_not_run(harbour: Make) -> None:
    site = piers(harbour)
    uuid = site.harbour.running(networks="none")
    site.harbour.act(uuid, {"os-stop": None})
    site.harbour.settled(uuid, "SHUTOFF")
    assert "tag" not in site.attach(uuid, version="2.69")
    site.has(uuid, port_of(uuid))


def test_a_port_that_the_host_refuses_leaves_the_server_as_it_was(harbour: Make) -> None:
    site = piers(harbour)
    uuid = site.harbour.running(networks="none", metadata={"fake:attach_interface": "fail"})
    refusal = site.attach(uuid, 500)
    assert refusal["message"] == f"Failed to attach network adapter device to {uuid}"
    site.has(uuid)
    assert site.actions(uuid)[-1] == ("attach_interface", "Error")
    assert "shall fail" in site.harbour.last_error(uuid)


def test_a_port_that_the_host_does_not_let_go_stays(harbour: Make) -> None:
    site = piers(harbour)
    uuid = site.harbour.running(metadata={"fake:detach_interface": "fail"})
    site.detach(uuid, port_of(uuid))
    site.has(uuid, port_of(uuid))
    assert site.actions(uuid)[-1] == ("detach_interface", "Error")


def test_an_address_that_is_not_there_is_told_and_nothing_is_left(harbour: Make) -> None:
    site = piers(harbour, **{"pool.ranges": {"default": "10.9.0.1-10.9.0.1"}})
    uuid = site.harbour.running(networks="none")
    other = site.harbour.running()
    assert "No addresses are left" in site.attach(uuid, 400)["message"]
    assert site.listed(uuid) == []
    site.harbour.cloud.delete(other)
    site.harbour.cloud.await_gone([other])
    site.attach(uuid)
    site.has(uuid, port_of(uuid))


def test_a_server_on_a_dead_host_gets_no_port_and_loses_none(harbour: Make) -> None:
    site = piers(harbour)
    bare, uuid = site.harbour.running(networks="none"), site.harbour.running()
    (host,) = site.harbour.cloud.cloud.agents
    site.harbour.die(host)
    site.attach(bare, 500)
    assert site.harbour.last_error(bare) == "the host of the server is down"
    site.detach(uuid, port_of(uuid))
    site.harbour.settled(uuid, "ACTIVE")
    assert site.listed(uuid) == [port_of(uuid)]
    assert site.harbour.cloud.addressed() == {uuid}


def test_what_is_asked_for_side_by_side_is_done_in_turn(harbour: Make) -> None:
    """Of two who want the same port one gets it; whoever detaches meanwhile comes last."""
    site = piers(harbour)
    uuid = site.harbour.running(networks="none", metadata={"fake:attach_interface": "delay=0.5"})
    answers: list[int] = []

    def ask() -> None:
        reply = site.api.simulate_post(f"/v2.1/servers/{uuid}/os-interface", json={})
        answers.append(reply.status_code)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answers) == [200, 400]
    site.has(uuid, port_of(uuid))
    for _ in range(2):
        reply = site.api.simulate_delete(f"/v2.1/servers/{uuid}/os-interface/{port_of(uuid)}")
        assert reply.status_code in (202, 404), reply.text
    site.has(uuid)


@pytest.mark.parametrize("what", ["attach", "detach"])
def test_meanwhile_a_server_may_be_deleted_but_not_changed(harbour: Make, what: str) -> None:
    networks = "none" if what == "attach" else "auto"
    site = piers(harbour, **{"compute.attach_timeout": 1})
    uuid = site.harbour.running(networks=networks, metadata={f"fake:{what}_interface": "hang"})
    if what == "attach":
        assert "not attached yet" in site.attach(uuid, 503)["message"]
    else:
        site.detach(uuid, port_of(uuid))
    refusal = site.harbour.refused(uuid, {"reboot": {"type": "SOFT"}}, 409)
    assert f"task_state {what}ing_interface" in refusal
    site.harbour.cloud.delete(uuid)
    site.harbour.nothing_left(uuid)


def test_attached_ports_follow_a_server_that_moves(harbour: Make) -> None:
    site = Piers(harbour(hosts=2))
    uuid = site.harbour.running(networks="none")
    site.attach(uuid)
    source = site.harbour.host_of(uuid)
    site.harbour.act(uuid, {"os-migrateLive": {"host": None, "block_migration": "auto"}})
    site.harbour.settled(uuid, "ACTIVE")
    assert site.harbour.host_of(uuid) != source
    wait_until(lambda: len(site.harbour.copies(uuid)) == 1, "the source to forget it", 30)
    site.has(uuid, port_of(uuid))


class Deserted(PoolNetwork):
    """A network whose ports somebody else has deleted."""

    def look(self, holdings: Sequence[ServerPorts]) -> list[list[PortRecord]]:
        return [[] for _ in holdings]


@pytest.mark.parametrize("fault", ["", "fail"])
def test_a_port_that_is_gone_from_the_network_goes_from_the_server(harbour: Make, fault: str) -> None:
    """Also if its host has something against that: there is no port to keep."""
    site = piers(harbour)
    uuid = site.harbour.running(metadata={"fake:detach_interface": fault} if fault else {})
    database = site.harbour.cloud.placement.database
    deserted = Deserted(database, PoolSettings.from_conf(site.harbour.cloud.conf))
    Refreshing(database, deserted, 0).refresh([uuid])
    site.harbour.settled(uuid, "ACTIVE")
    assert site.listed(uuid) == []
    assert site.harbour.addresses(uuid) == {}
    assert site.on_host(uuid) == ({port_of(uuid)} if fault else set())
    assert site.actions(uuid) == [("create", None)], "nobody asked for it"
    with database.read() as connection:
        kinds = set(connection.execute(sa.select(operations.c.kind)).scalars())
    assert kinds == {"build", "detach_interface"}


def test_a_pool_changes_no_address_of_a_port(harbour: Make) -> None:
    site = piers(harbour)
    uuid = site.harbour.running()
    before = site.harbour.addresses(uuid)
    site.harbour.act(uuid, {"addFixedIp": {"networkId": NETWORK}}, version="2.43")
    site.has(uuid, port_of(uuid))
    assert site.harbour.addresses(uuid) == before
