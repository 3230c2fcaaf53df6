"""What users can do with a server on a machine, and what they are refused at once."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.db.tables.metadata import METADATA
from moorage.images.catalogue import Catalogue
from tests.functional.conductor.metal_yard import MetalYard
from tests.support import simulated_ironic
from tests.support.processes import wait_until
from tests.support.simulated_ironic import SimulatedIronic


@pytest.fixture
def ironic() -> Iterator[SimulatedIronic]:
    with simulated_ironic.running() as made:
        yield made


@pytest.fixture(params=["scheduler", "reservation"])
def cloud(
    ironic: SimulatedIronic, database_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[MetalYard]:
    ironic.enrol("a-1", "a")
    reserve = request.param == "reservation"
    log = str(tmp_path / "{name}.log")
    made = MetalYard(database_url, tmp_path / "agents", ironic, reserve=reserve, console_log=log)
    yield made
    made.stop()


def act(cloud: MetalYard, server: str, action: dict[str, Any]) -> tuple[int, str]:
    answer = cloud.api.simulate_post(f"/v2.1/servers/{server}/action", json=action)
    return answer.status_code, answer.text


def test_it_is_not_moved_but_interrupted_and_ironic_knows_whose_it_is(
    cloud: MetalYard, ironic: SimulatedIronic
) -> None:
    (server,) = cloud.boot_metal()
    cloud.await_status([server], "ACTIVE")
    live = {"host": None, "block_migration": "auto"}
    for action in ({"migrate": None}, {"os-migrateLive": live}, {"resize": {"flavorRef": "1"}}):
        status, said = act(cloud, server, action)
        assert (status, "cannot be moved" in said) == (400, True), said
    shown = cloud.server(server)
    assert (shown["status"], shown["OS-EXT-STS:task_state"]) == ("ACTIVE", None)
    (machine,) = ironic.holders(server)
    info = ironic.nodes[machine]["instance_info"]
    assert info["project_id"] == shown["tenant_id"]
    assert info["user_id"] == shown["user_id"]
    assert act(cloud, server, {"trigger_crash_dump": None})[0] == 202
    wait_until(lambda: ironic.interrupted == [machine], "the interrupt", 30)
    cloud.await_rest()


def test_it_is_rescued_with_the_password_that_the_user_is_told(
    cloud: MetalYard, ironic: SimulatedIronic, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    (server,) = cloud.boot_metal()
    cloud.await_status([server], "ACTIVE")
    (machine,) = ironic.holders(server)
    for given in ({"adminPass": "a password of mine"}, None):
        status, said = act(cloud, server, {"rescue": given})
        assert status == 200, said
        password = json.loads(said)["adminPass"]
        cloud.await_status([server], "RESCUE")
        assert ironic.passwords[machine] == password
        if given is not None:
            assert password == given["adminPass"]
        assert password not in everything_kept(cloud, tmp_path)
        assert password not in caplog.text
        assert act(cloud, server, {"unrescue": None})[0] == 202
        cloud.await_status([server], "ACTIVE")
        assert ironic.nodes[machine]["provision_state"] == "active"
    act(cloud, server, {"rescue": None})
    cloud.await_status([server], "RESCUE")
    cloud.delete(server)
    cloud.await_gone([server])
    assert cloud.holders() == set()


def everything_kept(cloud: MetalYard, directory: Path) -> str:
    """What the database and the files of agents have."""
    with cloud.placement.database.read() as connection:
        rows = [
            repr(row)
            for table in METADATA.sorted_tables
            for row in connection.execute(sa.select(table)).all()
        ]
    files = [
        path.read_bytes().decode(errors="replace") for path in directory.rglob("journal*") if path.is_file()
    ]
    assert files
    return "\n".join(rows + files)


def test_one_that_can_not_be_rescued_is_what_it_was_and_says_why(
    cloud: MetalYard, ironic: SimulatedIronic
) -> None:
    (server,) = cloud.boot_metal()
    cloud.await_status([server], "ACTIVE")
    (machine,) = ironic.holders(server)
    ironic.unrescuable[machine] = "no answer from http://10.0.0.7/ramdisk"
    assert act(cloud, server, {"rescue": None})[0] == 200
    cloud.await_rest()
    shown = cloud.server(server)
    assert (shown["status"], shown["OS-EXT-STS:power_state"]) == ("ACTIVE", 1)
    assert ironic.nodes[machine]["provision_state"] == "active"
    actions = cloud.get(f"/v2.1/servers/{server}/os-instance-actions")["instanceActions"]
    assert [one["message"] for one in actions if one["action"] == "rescue"] == ["Error"]
    ironic.nodes[machine]["rescue_interface"] = "no-rescue"
    asked = list(ironic.nodes[machine].items())
    assert act(cloud, server, {"rescue": None})[0] == 200
    cloud.await_rest()
    assert list(ironic.nodes[machine].items()) == asked, "nothing was done to it"


def test_its_console_log_is_its_own(cloud: MetalYard, tmp_path: Path) -> None:
    log = tmp_path / "a-1.log"
    log.write_text("of the last tenant\n")
    (server,) = cloud.boot_metal()
    cloud.await_status([server], "ACTIVE")
    with log.open("a") as file:
        file.write("login:\n")
    ask: dict[str, Any] = {"os-getConsoleOutput": {}}
    assert act(cloud, server, ask) == (200, '{"output":"login:\\n"}')
    assert act(cloud, server, {"rebuild": {"imageRef": cloud.image()}})[0] == 202
    cloud.await_rest()
    assert act(cloud, server, ask) == (200, '{"output":"login:\\n"}')


def other_image(cloud: MetalYard) -> str:
    """Another one than machines are made from."""
    database = cloud.placement.database
    values = {"location": "http://images/other", "properties": {"baremetal:image_type": "whole-disk"}}
    Catalogue(database).seed({"other": values})
    images = cloud.get("/image/v2/images")["images"]
    return str(next(one["id"] for one in images if one["name"] == "other"))


def test_a_rebuild_that_is_refused_changes_nothing_and_shows_the_old_image(
    cloud: MetalYard, ironic: SimulatedIronic
) -> None:
    (server,) = cloud.boot_metal(config_drive=True)
    cloud.await_status([server], "ACTIVE")
    (machine,) = ironic.holders(server)
    before, other = cloud.server(server), other_image(cloud)
    ironic.nodes[machine] |= {"maintenance": True, "maintenance_reason": "mine"}
    there = json.dumps(ironic.nodes[machine])
    assert act(cloud, server, {"rebuild": {"imageRef": other}})[0] == 202
    cloud.await_rest()
    shown = cloud.server(server)
    assert (shown["status"], shown["image"]["id"]) == ("ACTIVE", before["image"]["id"])
    assert json.dumps(ironic.nodes[machine]) == there
    ironic.nodes[machine]["maintenance"] = False
    wanted = {"imageRef": other, "preserve_ephemeral": True}
    assert act(cloud, server, {"rebuild": wanted})[0] == 202
    cloud.await_rest()
    shown = cloud.server(server)
    assert (shown["status"], shown["image"]["id"]) == ("ACTIVE", other)
    info = ironic.nodes[machine]["instance_info"]
    assert (info["preserve_ephemeral"], info["image_source"]) == (True, "http://images/other")
    assert info["configdrive"], "it has one again"


@pytest.mark.parametrize("cloud", ["scheduler"], indirect=True)
def test_tenants_are_told_no_addresses_and_administrators_are(
    cloud: MetalYard, ironic: SimulatedIronic
) -> None:
    (machine,) = ironic.nodes
    why = "can't fetch http://10.0.0.7:9292/secret"
    ironic.failing[machine] = why
    (server,) = cloud.boot_metal()
    cloud.await_status([server], "ERROR")
    fault = cloud.server(server)["fault"]
    assert "10.0.0.7" not in fault["message"]
    assert machine not in fault["message"]
    assert why in fault["details"], "an administrator asks here"
