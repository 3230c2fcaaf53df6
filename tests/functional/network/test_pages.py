"""Neutron's lists come in pages, whose links lead to where only a proxy can go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from keystoneauth1.adapter import Adapter
from keystoneauth1.noauth import NoAuth
from keystoneauth1.session import Session

from moorage.core import uuids
from moorage.network.contract import NetworkUnavailableError
from moorage.network.neutron_link import NeutronFault, NeutronLink
from tests.support import stage_neutron
from tests.support.stage_neutron import NETWORK, PAGE, Json, StageNeutron

SERVER = "44444444-0000-4000-8000-000000000001"
PORTS = 4 * PAGE + 1
Answer = tuple[int, Json]


class ChangingNeutron(StageNeutron):
    """What it says is changed on its way, or it changes after it has said it."""

    def __init__(self) -> None:
        super().__init__()
        self.change: Callable[[str, Answer], Answer] = lambda target, answer: answer

    def answer(self, who: str, method: str, target: str, body: Json, if_match: str) -> Answer:
        return self.change(target, super().answer(who, method, target, body, if_match))


@pytest.fixture
def neutron() -> ChangingNeutron:
    made = ChangingNeutron()
    for _ in range(PORTS):
        made.ports[made.add_port("project")]["device_id"] = SERVER
        made.add_port("project")
    return made


@pytest.fixture
def link(neutron: ChangingNeutron) -> Iterator[NeutronLink]:
    with stage_neutron.serving(neutron) as port:
        endpoint = f"http://127.0.0.1:{port}/v2.0"
        yield NeutronLink(Adapter(Session(auth=NoAuth(endpoint=endpoint)), endpoint_override=endpoint))


def ids(entries: list[Json]) -> list[str]:
    return sorted(entry["id"] for entry in entries)


def test_all_that_match_are_found(link: NeutronLink, neutron: ChangingNeutron) -> None:
    assert ids(link.find("ports")) == sorted(neutron.ports)
    found = link.find_by("ports", "device_id", [SERVER, uuids.generate()])
    assert ids(found) == ids(neutron.ports_of(SERVER))
    assert [network["id"] for network in link.find("networks")] == [NETWORK]
    assert link.find("floatingips") == []


def test_the_first_page_is_one_request(link: NeutronLink, neutron: ChangingNeutron) -> None:
    assert len(link.find_some("ports")) == PAGE
    assert len(neutron.asked) == 1


def test_ports_that_go_while_they_are_listed_hide_no_others(
    link: NeutronLink, neutron: ChangingNeutron
) -> None:
    """Each second page's last port, after which the next page was to begin, is deleted right then."""
    gone: set[str] = set()
    pages = 0

    def change(target: str, answer: Answer) -> Answer:
        nonlocal pages
        pages += 1
        found = answer[1].get("ports", [])
        if pages % 2 and found:
            gone.add(found[-1]["id"])
            del neutron.ports[found[-1]["id"]]
        return answer

    there = ids(neutron.ports_of(SERVER))
    neutron.change = change
    found = ids(link.find("ports", [("device_id", SERVER)]))
    assert len(gone) > 2
    assert len(found) == len(set(found))
    assert set(there) - gone <= set(found) <= set(there)


def test_pages_that_go_round_in_circles_are_given_up(link: NeutronLink, neutron: ChangingNeutron) -> None:
    first = dict(neutron.answer("", "GET", "/v2.0/ports", {}, "")[1])
    neutron.change = lambda target, answer: (200, first)
    with pytest.raises(NetworkUnavailableError, match=r"list of ports has no end"):
        link.find("ports")
    assert len(neutron.asked) < 10


@pytest.mark.parametrize("body", [{}, {"hello": []}, {"ports": None}, {"ports": {"id": "1"}}])
def test_what_is_no_list_of_neutrons_is_told(
    link: NeutronLink, neutron: ChangingNeutron, body: dict[str, Any]
) -> None:
    neutron.change = lambda target, answer: (200, body)
    with pytest.raises(NetworkUnavailableError, match="What answers is not Neutron"):
        link.find("ports")


def test_a_refusal_is_none_of_the_marker_s(link: NeutronLink, neutron: ChangingNeutron) -> None:
    """A Neutron that begins to refuse in the middle of a list: its first page is asked for once more."""

    def change(target: str, answer: Answer) -> Answer:
        told = {"type": "HTTPNotFound", "message": "the extension was unloaded", "detail": ""}
        return (404, {"NeutronError": told}) if len(neutron.asked) > 2 else answer

    neutron.change = change
    with pytest.raises(NeutronFault, match="the extension was unloaded"):
        link.find("ports")
    assert len(neutron.asked) < 10
