"""A cloud whose hosts have the machines of a simulated Ironic, chosen by the scheduler or by reservation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from moorage.agent.journal import Journal
from moorage.agent.ownership import Ownership
from moorage.agent.service import AgentService, AgentSettings
from moorage.cli.embedded.cloud import Cloud
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations import pool
from moorage.drivers.ironic.reservations.choosing import ChoosingDriver
from moorage.drivers.ironic.reservations.reserving import ReservingDriver
from moorage.drivers.ironic.settings import IronicSettings
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until
from tests.support.simulated_ironic import SimulatedIronic

FLAVOR = "gold"
GROUP = Partition("a")


class MetalCloud(Cloud):
    """Its hosts have machines of the same group."""

    def __init__(self, ironic: SimulatedIronic, quick: IronicSettings, reserve: bool, *others: Any) -> None:
        self._ironic = ironic
        self._quick = quick
        self._reserve = reserve
        self.ways: dict[str, bool] = {}
        """Whether a host reserves machines, if that is not as with the others."""
        super().__init__(*others)

    def agent(self, host: str) -> AgentService:
        directory = self._data / "agents" / host
        directory.mkdir(parents=True, exist_ok=True)
        settings = replace(AgentSettings.from_conf(self._conf), host=host, driver="ironic")
        client = self._ironic.client()
        reserves = self.ways.get(host, self._reserve)
        kind = ReservingDriver if reserves else ChoosingDriver
        driver = kind(client, GROUP, host, self._quick)
        journal = Journal(directory / "journal.sqlite")
        ownership = Ownership(host, driver)
        return AgentService(settings, driver, self._bus.agent_side(), self._placement, journal, ownership)


class MetalYard(Yard):
    """Two hosts that reserve machines, or one with a node for each of them."""

    def __init__(
        self,
        url: str,
        directory: Path,
        ironic: SimulatedIronic,
        *,
        shared: bool = False,
        reserve: bool = True,
        options: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self._ironic = ironic
        self.reserve = reserve
        self._quick = IronicSettings(poll_interval=0.05, shared_capacity=shared, **settings)
        machines = sum(node["conductor_group"] == GROUP.key for node in ironic.nodes.values())
        each: dict[str, Any] = {"fake.nodes": 1 if reserve else machines, **(options or {})}
        super().__init__(url, directory, 2 if reserve else 1, **each)
        self.make_flavor()

    def make_cloud(self, directory: Path, hosts: int) -> Cloud:
        database = self.placement.database
        return MetalCloud(
            self._ironic, self._quick, self.reserve, self.conf, database, self.client, directory, hosts
        )

    def make_flavor(self) -> None:
        body = {"id": FLAVOR, "name": FLAVOR, "vcpus": 4, "ram": 64, "disk": 1}
        assert self.api.simulate_post("/v2.1/flavors", json={"flavor": body}).status_code == 200
        specs = {f"resources:{name}": "0" for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
        seat = {f"resources:{pool.SEAT}": "1"} if self.reserve else {}
        specs |= {**seat, "resources1:CUSTOM_GOLD": "1"}
        body = {"extra_specs": specs}
        path = f"/v2.1/flavors/{FLAVOR}/os-extra_specs"
        assert self.api.simulate_post(path, json=body).status_code == 200

    def boot_metal(self, count: int = 1, **fields: Any) -> list[str]:
        return self.boot(count, flavorRef=FLAVOR, **fields)

    def host_of(self, uuid: str) -> str:
        return str(self.server(uuid)["OS-EXT-SRV-ATTR:host"])

    def owner_of(self, host: str) -> str:
        """Who looks after the pool of a host."""
        listed = self.get("/v2.1/os-hypervisors/detail")["hypervisors"]
        return str(next(one["service"]["host"] for one in listed if one["hypervisor_hostname"] == host))

    def offered(self, provider_uuid: str) -> int:
        """The machines that a provider has for servers, used or not."""
        with self.placement.picture() as (fleet, _):
            slot = fleet.slot_of_uuid(provider_uuid)
            found = {} if slot is None else fleet.inventory(slot)
            named = {fleet.names.class_name(name): capacity for name, (capacity, _) in found.items()}
            return named.get("CUSTOM_GOLD", 0)

    def await_offer(self, provider_uuid: str, count: int) -> None:
        wait_until(lambda: self.offered(provider_uuid) == count, f"{count} machines to be offered", 60)

    def set_service(self, host: str, **fields: Any) -> None:
        services = self.get("/v2.1/os-services?binary=nova-compute")["services"]
        identity = next(service["id"] for service in services if service["host"] == host)
        reply = self.api.simulate_put(f"/v2.1/os-services/{identity}", json=fields)
        assert reply.status_code == 200, reply.text

    def die(self, host: str) -> None:
        self.cloud.agents.pop(host).stop()
        self.set_service(host, forced_down=True)

    def come_back(self, host: str) -> None:
        self.set_service(host, forced_down=False)
        agent = self.cloud.agents[host] = self.cloud.agent(host)
        agent.start()
