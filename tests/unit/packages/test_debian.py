"""What packages of Debian say of themselves, and do when they are installed; building them takes longer
(`make packages`)."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from moorage.cli import settings
from moorage.cli.packaging.programs import PROGRAMS
from packages import source
from packages.debian import __main__ as building
from packages.debian import control, scripts

PACKAGES = control.packages("1.2.3-1", (3, 11))
SCRIPTS = tomllib.loads((source.ROOT / "pyproject.toml").read_text())["project"]["scripts"]


def test_each_service_is_a_package_and_the_commands_are_in_the_common_one(tmp_path: Path) -> None:
    services = {program.name for program in PROGRAMS if program.is_service}
    assert {package.name for package in PACKAGES} == {control.COMMON, *services}
    assert services | set(control.TOOLS) == set(SCRIPTS)
    building._launchers(tmp_path / "bin")
    for name, entry in SCRIPTS.items():
        module, _, function = entry.partition(":")
        assert f"\nfrom {module} import {function}\n" in (tmp_path / "bin" / name).read_text()


def test_services_need_the_same_release_of_what_they_share() -> None:
    for package in PACKAGES[1:]:
        told = package.control("1.2.3-1", "amd64", 7)
        assert "\nDepends: moorage-common (= 1.2.3-1)\n" in told
        assert not any(line and not line.startswith(" ") and ": " not in line for line in told.splitlines())


@pytest.mark.parametrize("name", [package.name for package in PACKAGES])
def test_what_is_done_at_an_installation_is_understood_by_a_shell(name: str) -> None:
    written = scripts.COMMON if name == control.COMMON else scripts.of_service(name)
    assert set(written) == {"postinst", "prerm", "postrm"}
    for text in written.values():
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)


def test_the_configuration_that_comes_along_is_read_and_lets_nobody_in() -> None:
    conf = settings.read([building.HERE / "moorage.conf"])
    assert conf.auth.strategy == "basic"
    assert conf.database.connection.startswith("sqlite:////var/lib/moorage/")
    assert settings.read([building.HERE / "agent.conf"]).agent.driver == "fake"
