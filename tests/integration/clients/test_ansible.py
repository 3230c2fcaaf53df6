"""Ansible's modules for OpenStack: whoever plays the same again changes nothing.

Beside a real Keystone, Neutron and Glance, since the modules ask those, too. Each task takes a processor more
than a second: `make clients` plays them, `make test` does not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.clients.scenarios import PUBLIC_KEY
from tests.integration.clouds import keystone_clouds
from tests.integration.openstack_site import HOSTS, IMAGE, Site, running
from tests.lab.ansible.playbook import play

HERE = Path(__file__).resolve().parent
Play = Callable[..., list[str]]
MADE = (
    *("A flavor", "The flavor is the project's, too", "The project's quotas", "An aggregate with a zone"),
    *("A key pair", "A server group", "A server"),
)
GONE = (
    *("No metadata", "No server", "No server group", "No key pair", "No aggregate", "The default quotas"),
    "No flavor",
)
"""The tasks that have something to do the first time."""

pytestmark = [
    pytest.mark.skipif(not os.environ.get("MOORAGE_CLIENTS"), reason="minutes of a processor: make clients"),
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(tmp_path_factory.mktemp("ansible")) as made:
        made.plain_network("private")
        yield made


@pytest.fixture(scope="module")
def played(site: Site) -> Play:
    lab = site.lab
    clouds = site.directory / "clouds.yaml"
    clouds.write_text(keystone_clouds(lab.keystone, lab.keystone.admin, lab.demo))
    variables = {
        "administrator": lab.keystone.admin.name,
        "user": lab.demo.name,
        "project": lab.demo.project,
        "image": IMAGE,
        "network": "private",
        "host": next(iter(HOSTS)),
        "public_key": PUBLIC_KEY,
    }

    def played(name: str, *, first: bool = True) -> list[str]:
        playbook = HERE / "playbooks" / f"{name}.yml"
        return play(playbook, clouds, site.directory / "ansible", {**variables, "first": first})

    return played


def test_what_is_there_is_left_alone(played: Play, site: Site) -> None:
    assert played("present") == list(MADE)
    assert played("present") == []
    [server] = site.demo.compute.servers()
    assert (server.name, server.status) == ("ansible-web", "ACTIVE")


def test_actions_are_taken_once(played: Play, site: Site) -> None:
    """The playbook itself says which task may change something."""
    played("actions")
    [server] = site.demo.compute.servers()
    assert server.status == "ACTIVE"


def test_what_is_gone_stays_gone(played: Play, site: Site) -> None:
    assert played("absent") == list(GONE)
    assert played("absent", first=False) == []
    assert list(site.demo.compute.servers()) == []
    assert list(site.demo.compute.keypairs()) == []
    assert list(site.admin.network.ports()) == []
