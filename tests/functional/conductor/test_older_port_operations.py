"""As `test_older_operations.py`, on Neutron: agents make ports, or release them, or ports need bandwidth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.bus.versions import AgentVersion
from moorage.drivers.contract import Inventory
from moorage.drivers.fake import driver as fake_driver
from moorage.drivers.fake.driver import FakeSettings
from moorage.network.neutron import NeutronNetwork
from tests.functional.conductor.older.resuming import BANDWIDTH, SELDOM, resume
from tests.functional.conductor.older.sample import SAMPLES, Sample
from tests.functional.conductor.older.site import Site
from tests.functional.conductor.older.ways import PROCESSOR
from tests.support import stage_neutron
from tests.support.crossing import Crossing
from tests.support.stage_neutron import StageNeutron

GROUP = {"id": "a1", "required": [], "resources": BANDWIDTH}


class Crossed:
    """Agents of a version that makes ports itself; nodes have bandwidth."""

    def __init__(self, url: str, directory: Path, port: int, neutron: StageNeutron) -> None:
        def network(who: str) -> NeutronNetwork:
            return stage_neutron.network_at(port, who)

        self.neutron = neutron
        self.cloud = Crossing(url, directory, network, **SELDOM)
        self._credentials: bool | None = None
        self.site = Site(
            self.cloud.api,
            self.cloud.database,
            self.cloud._client,
            stage_neutron.NETWORK,
            lambda: {port["device_id"] for port in neutron.owned()},
            neutron.unbindable,
            lambda host: self.cloud.agents[host]._driver,
        )
        self.be_for(SAMPLES[0])
        for number in (1, 2, 3):
            self.cloud.start_agent(f"host-{number}", AgentVersion.SHARED_NODES)
        self._make_flavor()

    def be_for(self, sample: Sample) -> None:
        self.neutron.needs = {"request_groups": [GROUP]} if sample.needs_bandwidth else None
        credentials = not sample.releases_by_agent
        if credentials is not self._credentials:
            self.cloud.start_conductor(credentials=credentials)
            assert self.cloud.conductor is not None
            self.site.use(self.cloud.conductor.runner)
            self._credentials = credentials

    def _make_flavor(self) -> None:
        flavor = {"name": PROCESSOR, "id": PROCESSOR, "ram": 64, "vcpus": 1, "disk": 1}
        none_of = {"extra_specs": {"resources:MEMORY_MB": "0", "resources:DISK_GB": "0"}}
        for path, body in (("", {"flavor": flavor}), (f"/{PROCESSOR}/os-extra_specs", none_of)):
            reply = self.cloud.api.simulate_post(f"/v2.1/flavors{path}", json=body)
            assert reply.status_code == 200, reply.text


@pytest.fixture(scope="module")
def crossed_cloud(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crossed]:
    directory: Path = tmp_path_factory.mktemp("crossed")
    neutron, inventories = StageNeutron(), fake_driver._inventories

    def with_bandwidth(settings: FakeSettings) -> dict[str, Inventory]:
        return inventories(settings) | {name: Inventory(total=10 * n) for name, n in BANDWIDTH.items()}

    with pytest.MonkeyPatch.context() as patch, stage_neutron.serving(neutron) as port:
        patch.setattr(fake_driver, "_inventories", with_bandwidth)
        crossed = Crossed(module_database_url, directory, port, neutron)
        yield crossed
        crossed.cloud.stop()


@pytest.fixture
def crossed(crossed_cloud: Crossed) -> Iterator[Crossed]:
    yield crossed_cloud
    crossed_cloud.site.clear()


@pytest.mark.parametrize("sample", [one for one in SAMPLES if one.is_on_neutron], ids=lambda one: one.name)
def test_what_an_older_release_began_is_ended(crossed: Crossed, sample: Sample) -> None:
    crossed.be_for(sample)
    resume(crossed.site, sample)
