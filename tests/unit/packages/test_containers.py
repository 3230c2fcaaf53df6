"""The containers and the compose file: all that they name is there, and is understood."""

from __future__ import annotations

import re
from pathlib import Path

import bcrypt

from moorage.cli import settings
from moorage.cli.packaging.programs import PROGRAMS
from moorage.http import auth
from tests.support.composed_cloud import CONTAINERS, services

TARGETS = dict(
    re.findall(
        r"(?ms)^FROM common AS (\S+)$.*?^ENTRYPOINT \[\"(\S+)\",", (CONTAINERS / "Containerfile").read_text()
    )
)


def test_each_process_has_an_image() -> None:
    ours = {program.name: program.name.removeprefix("moorage-") for program in PROGRAMS if program.is_service}
    assert {**{target: program for program, target in ours.items()}, "manage": "moorage-manage"} == TARGETS


def test_what_is_started_is_there() -> None:
    found = services()
    built = {name: service["build"] for name, service in found.items() if "build" in service}
    assert {"placement", "api", "conductor", "agent-1", "schema"} <= set(built)
    for name, build in built.items():
        assert build["target"] in TARGETS, name
        assert (CONTAINERS / build["context"] / build["dockerfile"]).exists()
    for service in found.values():
        for volume in service.get("volumes", []):
            here = volume.split(":")[0]
            assert not here.startswith("./") or (CONTAINERS / here).exists(), volume


def test_whoever_comes_too_early_or_dies_is_started_again_and_nobody_waits_for_another() -> None:
    for name, service in services().items():
        once = name in ("schema", "flavors")
        assert service["restart"] == ("on-failure" if once else "unless-stopped"), name
        assert "depends_on" not in service, name


def test_what_has_a_password_that_anybody_knows_is_seen_on_this_machine_only() -> None:
    published = [port for service in services().values() for port in service.get("ports", [])]
    assert len(published) == 3
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_configuration_is_read_and_the_password_is_the_one_it_says() -> None:
    for name in ("moorage.conf", "agent.conf"):
        settings.read([CONTAINERS / name])
    users = auth.read_password_file(Path(CONTAINERS / "htpasswd"))
    assert bcrypt.checkpw(b"moorage", users["admin"])
    assert "\npassword = moorage\n" in (CONTAINERS / "agent.conf").read_text()
