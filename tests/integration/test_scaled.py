"""A user's and an operator's day on a deployment in pieces: real processes, neighbours and clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from openstack.compute.v2.server import Server
from openstack.connection import Connection

from tests.lab.client.openstack import openstack, order
from tests.support import debian
from tests.support.deployment import (
    EXCLUSIVE_FLAVOR,
    EXCLUSIVE_HOST,
    IMAGE,
    SHARED_FLAVOR,
    SHARED_HOSTS,
    Deployment,
    running,
)
from tests.support.processes import free_port, wait_until
from tests.support.websockets import WebSocketClient

HOSTS = {*SHARED_HOSTS, EXCLUSIVE_HOST}
APIS = (0, 1)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    try:
        with running(tmp_path_factory.mktemp("scaled")) as cloud:
            yield cloud
    except debian.Unavailable as error:
        pytest.skip(str(error))


class Client:
    """The official command line client, by way of one of the APIs."""

    def __init__(self, deployment: Deployment, api: int) -> None:
        self._clouds_file = deployment.clouds_file(api)

    def __call__(self, command: str) -> Any:
        return openstack(self._clouds_file, "moorage", *command.split())

    def order(self, command: str) -> None:
        order(self._clouds_file, "moorage", *command.split())


def boot(sdk: Connection, name: str, flavor: str = SHARED_FLAVOR, **more: object) -> Server:
    image = sdk.image.find_image(IMAGE, ignore_missing=False)
    return sdk.compute.create_server(name=name, image_id=image.id, flavor_id=flavor, networks="auto", **more)


def delete(sdk: Connection, *servers: Server) -> None:
    for server in servers:
        sdk.compute.delete_server(server)
    for server in servers:
        sdk.compute.wait_for_delete(server, wait=60)


def test_the_client_takes_a_server_through_its_life(deployment: Deployment) -> None:
    """What one API is told, the other one knows."""
    run, other, name = Client(deployment, 0), Client(deployment, 1), "life"
    made = run(f"server create --flavor {SHARED_FLAVOR} --image {IMAGE} --wait {name}")
    assert made["status"] == "ACTIVE"
    assert name in [server["Name"] for server in other("server list")]
    shown = other(f"server show {name}")
    assert shown["OS-EXT-SRV-ATTR:host"] in SHARED_HOSTS
    assert shown["addresses"]["private"]
    run.order(f"server stop {name}")
    wait_until(lambda: other(f"server show {name}")["status"] == "SHUTOFF", "the stop", 60)
    other.order(f"server start {name}")
    wait_until(lambda: run(f"server show {name}")["status"] == "ACTIVE", "the start", 60)
    run.order(f"server reboot --hard --wait {name}")
    actions = [event["Action"] for event in other(f"server event list {name}")]
    assert actions == ["reboot", "start", "stop", "create"]
    other.order(f"server delete --wait {name}")
    assert name not in [server["Name"] for server in run("server list")]


@pytest.mark.parametrize("api", APIS)
def test_the_sdk_takes_a_server_through_its_life(deployment: Deployment, api: int) -> None:
    sdk, other = deployment.connect(api), deployment.connect(1 - api)
    server = sdk.compute.wait_for_server(boot(sdk, f"sdk-{api}"), wait=60)
    assert other.compute.get_server(server.id).status == "ACTIVE"
    other.compute.stop_server(server)
    sdk.compute.wait_for_server(server, status="SHUTOFF", wait=60)
    sdk.compute.start_server(server)
    other.compute.wait_for_server(server, status="ACTIVE", wait=60)
    sdk.compute.reboot_server(server, "HARD")
    wait_until(lambda: sdk.compute.get_server(server.id).task_state is None, "the reboot", 60)
    assert server.id in [one.id for one in other.compute.servers()]
    delete(other, server)
    assert sdk.compute.find_server(f"sdk-{api}") is None


def test_many_servers_of_one_request_get_an_address_each(deployment: Deployment) -> None:
    sdk = deployment.connect(0)
    boot(sdk, "many", min_count=10, max_count=10)
    servers = [one for one in sdk.compute.servers() if one.name.startswith("many-")]
    assert len(servers) == 10
    alive = [sdk.compute.wait_for_server(server, wait=90) for server in servers]
    assert len({server.addresses["private"][0]["addr"] for server in alive}) == 10
    assert {server.compute_host for server in alive} == set(SHARED_HOSTS)
    delete(sdk, *alive)


def test_a_node_for_exclusive_use_has_one_server(deployment: Deployment) -> None:
    """As many as there are nodes; one more finds no place, and is told so."""
    sdk, nodes = deployment.connect(1), deployment.shape.exclusive_nodes
    boot(sdk, "alone", EXCLUSIVE_FLAVOR, min_count=nodes, max_count=nodes)
    servers = [one for one in sdk.compute.servers() if one.name.startswith("alone-")]
    alive = [sdk.compute.wait_for_server(server, wait=90) for server in servers]
    assert len({server.hypervisor_hostname for server in alive}) == nodes
    assert {server.compute_host for server in alive} == {EXCLUSIVE_HOST}
    late = boot(sdk, "late", EXCLUSIVE_FLAVOR)
    wait_until(lambda: sdk.compute.get_server(late.id).status == "ERROR", "the refusal", 60)
    assert "No valid host was found" in sdk.compute.get_server(late.id).fault["message"]
    delete(sdk, late, *alive)


@pytest.mark.parametrize("api", APIS)
def test_every_service_is_listed(deployment: Deployment, api: int) -> None:
    listed = Client(deployment, api)("compute service list")
    up = {(row["Binary"], row["Host"]) for row in listed if row["State"] == "up"}
    conductors = {("nova-conductor", conductor.name) for conductor in deployment.conductors}
    assert up == conductors | {("nova-compute", host) for host in HOSTS}


def test_a_conductor_may_be_ended_at_any_time(deployment: Deployment) -> None:
    sdk = deployment.connect(0)
    first, second = deployment.conductors
    for conductor, name in ((first, "one"), (second, "two")):
        server = boot(sdk, name, metadata={"fake:spawn": "delay=1"})
        assert conductor.end() == 0
        delete(sdk, sdk.compute.wait_for_server(server, wait=60))
        conductor.start()


def test_an_api_may_be_ended_at_any_time(deployment: Deployment) -> None:
    api = deployment.apis[0]
    assert api.end() == 0
    other = deployment.connect(1)
    delete(other, other.compute.wait_for_server(boot(other, "still"), wait=60))
    api.start()
    assert deployment.connect(0).compute.find_server("still") is None


def test_an_agent_that_is_ended_goes_on_where_it_was(deployment: Deployment) -> None:
    sdk, agent = deployment.connect(0), deployment.agents[EXCLUSIVE_HOST]
    server = boot(sdk, "slow", EXCLUSIVE_FLAVOR, metadata={"fake:spawn": "delay=2"})
    wait_until(lambda: sdk.compute.get_server(server.id).task_state == "spawning", "the spawn", 60)
    assert agent.end() == 0
    agent.start()
    alive = sdk.compute.wait_for_server(server, wait=60)
    assert [kept.uuid for kept in deployment.kept_by(EXCLUSIVE_HOST)] == [server.id]
    delete(sdk, alive)
    assert deployment.kept_by(EXCLUSIVE_HOST) == []


def test_consoles_reach_across_processes_and_a_proxy_may_be_killed(deployment: Deployment) -> None:
    sdk = deployment.connect(0)
    server = sdk.compute.wait_for_server(boot(sdk, "talkative"), wait=60)
    told = sdk.compute.get_server_console_output(server)
    assert told is not None
    assert server.id in told["output"]
    assert sdk.compute.get(f"/servers/{server.id}/diagnostics", microversion="2.48").status_code == 200
    console = sdk.compute.create_console(server, console_type="serial")
    assert console is not None
    proxy = deployment.server("console-proxy", "moorage-console-proxy", free_port())
    here = f"ws://127.0.0.1:{proxy.port}/?{urlsplit(console['url']).query}"
    for _life in range(2):
        proxy.start()
        client = WebSocketClient(here)
        assert server.id.encode() in client.receive(60)
        proxy.kill()
        client.await_end()
        client.close()
    proxy.start()
    client = WebSocketClient(here)
    delete(sdk, server)
    client.await_end()
    client.close()
    assert proxy.end() == 0
