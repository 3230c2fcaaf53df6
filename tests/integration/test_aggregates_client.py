"""An operator's day with host aggregates: the official client, and Placement asked with the same client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.embedded import Embedded, embedded
from tests.lab.client.openstack import ClientError, openstack, order


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with embedded(tmp_path_factory.mktemp("aggregates"), hosts=2) as running:
        yield running


def run(cloud: Embedded, command: str) -> Any:
    """What a command that shows something shows."""
    return openstack(cloud.clouds_file, "moorage", *command.split())


def tell(cloud: Embedded, command: str) -> None:
    order(cloud.clouds_file, "moorage", *command.split())


def members(cloud: Embedded, aggregate_uuid: str) -> set[str]:
    listed = run(cloud, f"resource provider list --member-of {aggregate_uuid}")
    return {provider["name"] for provider in listed}


def test_the_life_of_an_aggregate(cloud: Embedded) -> None:
    made = run(cloud, "aggregate create --zone east --property ssd=true rack-1")
    assert (made["name"], made["availability_zone"], made["properties"]["ssd"]) == ("rack-1", "east", "true")
    uuid = run(cloud, "aggregate show rack-1")["uuid"]
    (listed,) = run(cloud, "aggregate list --long")
    assert (listed["Name"], listed["Availability Zone"]) == ("rack-1", "east")
    for host in ("fake-1", "fake-2"):
        assert host in run(cloud, f"aggregate add host rack-1 {host}")["hosts"]
    assert members(cloud, uuid) == {"fake-1", "fake-2"}
    with pytest.raises(ClientError, match="already has host"):
        run(cloud, "aggregate add host rack-1 fake-1")
    with pytest.raises(ClientError, match="could not be found"):
        run(cloud, "aggregate add host rack-1 nobody")
    assert run(cloud, "aggregate remove host rack-1 fake-2")["hosts"] == ["fake-1"]
    assert members(cloud, uuid) == {"fake-1"}
    tell(cloud, "aggregate set --name rack-one --property gpu=a100 rack-1")
    tell(cloud, "aggregate unset --property ssd rack-one")
    assert run(cloud, "aggregate show rack-one")["properties"] == {"gpu": "a100"}
    tell(cloud, "aggregate cache image rack-one cirros-0.6.3-x86_64-disk")
    with pytest.raises(ClientError, match="not empty"):
        tell(cloud, "aggregate delete rack-one")
    run(cloud, "aggregate remove host rack-one fake-1")
    tell(cloud, "aggregate delete rack-one")
    assert run(cloud, "aggregate list") == []
    assert members(cloud, uuid) == set()
