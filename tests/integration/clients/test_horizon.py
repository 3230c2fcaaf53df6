"""A headless browser in Horizon, on a cloud with a real Keystone, Neutron and Glance: no message of an error.

Each page takes a second of a processor: `make clients` walks through them, `make test` does not. Pictures of
all pages are kept in `.cache/horizon`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.clients import scenarios
from tests.integration.clients.dashboard import Dashboard
from tests.integration.openstack_site import HOSTS, IMAGE, running
from tests.integration.openstack_site import Site as Cloud
from tests.lab.horizon import service as horizon
from tests.support import debian
from tests.support.browser import Browser
from tests.support.order import ROOT

PICTURES = ROOT / ".cache" / "horizon"
SIZE = (1500, 1000)

pytestmark = [
    pytest.mark.skipif(not os.environ.get("MOORAGE_CLIENTS"), reason="minutes of a processor: make clients"),
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@dataclass
class Site:
    cloud: Cloud
    board: Dashboard

    def server(self, name: str) -> Any:
        """As an administrator sees it. (The API takes a name for a regular expression.)"""
        return next(iter(self.cloud.admin.compute.servers(all_projects=True, name=f"^{name}$")))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory: Path = tmp_path_factory.mktemp("horizon")
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    try:
        with running(directory) as cloud, horizon.start(directory / "horizon", cloud.lab.keystone) as served:
            cloud.plain_network("private")
            with Browser(tmp_path_factory.mktemp("browser"), SIZE) as browser:
                yield Site(cloud, Dashboard(browser, served.url, PICTURES))
    except debian.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def user(site: Site) -> Iterator[Dashboard]:
    site.board.sign_in(site.cloud.lab.demo)
    yield site.board
    site.board.sign_out()


@pytest.fixture
def administrator(site: Site) -> Iterator[Dashboard]:
    site.board.sign_in(site.cloud.lab.keystone.admin)
    yield site.board
    site.board.sign_out()


def test_a_server_is_launched_and_goes_through_its_states(user: Dashboard, site: Site) -> None:
    scenarios.launch(user, "web", image=IMAGE, flavor="m1.tiny")
    scenarios.look_at_the_server(user, site.server("web").id)
    scenarios.change_states(user, "web")
    usage = user.open("/project/")
    assert "web" in usage, "the overview does not report the server's usage"


def test_an_administrator_sees_and_changes_the_cloud(administrator: Dashboard, site: Site) -> None:
    busy = site.server("web").compute_host
    idle = next(host for host in HOSTS if host != busy)
    scenarios.look_around(administrator, busy)
    scenarios.take_a_host_out_of_service(administrator, idle)
    scenarios.handle_aggregates(administrator, idle)
    scenarios.handle_flavors(administrator)
    project_id = site.cloud.lab.demo.project_id
    scenarios.change_quotas(administrator, project_id)
    assert site.cloud.admin.compute.get_quota_set(project_id).server_groups == 7
    scenarios.move_a_server(administrator, "web")
    moves = site.cloud.admin.compute.migrations(instance_uuid=site.server("web").id)
    assert {move.migration_type: move.status for move in moves} == {
        "migration": "confirmed",
        "live-migration": "completed",
    }


def test_a_server_is_changed_and_deleted(user: Dashboard, site: Site) -> None:
    scenarios.change_the_server(user, "web", image=IMAGE, flavor="m1.small")
    scenarios.delete(user, "web")
    assert list(site.cloud.admin.network.ports()) == []


def test_key_pairs_and_server_groups_come_and_go(user: Dashboard) -> None:
    scenarios.handle_key_pairs(user)
    scenarios.handle_server_groups(user)
