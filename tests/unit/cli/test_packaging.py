"""The files around the programs: all are there, say what the programs say, and are understood."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from oslo_config import cfg

from moorage.cli import policies, settings
from moorage.cli.packaging import files, samples
from moorage.cli.packaging.files import PackagedFile
from moorage.cli.packaging.programs import PROGRAMS, STATUS, Program
from moorage.cli.version import release

PROJECT = tomllib.loads((Path(__file__).resolve().parents[3] / "pyproject.toml").read_text())["project"]
BIN = Path("/usr/bin")


@pytest.fixture(scope="module")
def made() -> dict[str, PackagedFile]:
    """By the name of the file."""
    return {Path(file.path).name: file for file in files.packaged(files.PACKAGE, BIN)}


@pytest.fixture(scope="module")
def installed(made: dict[str, PackagedFile], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    for file in made.values():
        path = root / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.content)
    return root


def need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def test_every_command_is_one_of_the_programs_and_has_a_page(made: dict[str, PackagedFile]) -> None:
    names = {program.name for program in PROGRAMS} | {STATUS}
    assert names == set(PROJECT["scripts"])
    assert names == {name.removesuffix(".1") for name in made if name.endswith(".1")}
    services = {f"{program.name}.service" for program in PROGRAMS if program.is_service}
    assert services == {name for name in made if name.endswith(".service")}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_command_tells_the_release(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    program.command()(["--version"], prog_name=program.name, standalone_mode=False)
    assert capsys.readouterr().out == f"{program.name} {PROJECT['version']}\n"
    assert release() == PROJECT["version"]


def test_every_option_says_what_it_is_for_and_is_in_the_sample() -> None:
    sample = samples.moorage_conf()
    for group, options in settings.list_opts():
        section = re.split(r"(?m)^\[\w+\]$", sample.split(f"\n[{group}]\n", 1)[1], maxsplit=1)[0]
        for option in options:
            assert option.help, f"[{group}] {option.name} has no help"
            assert re.search(rf"(?m)^#\s?{option.dest} =", section), f"[{group}] {option.dest} is missing"


def test_the_sample_of_an_agent_has_what_it_reads_and_no_more() -> None:
    sections = set(re.findall(r"(?m)^\[(\w+)\]$", samples.agent_conf()))
    assert {"DEFAULT", "agent", "libvirt", "ironic", "placement_client", "metadata"} <= sections
    assert not sections & {"database", "keystone_authtoken", "compute", "conductor", "auth", "oslo_policy"}
    assert "transport_url" in samples.agent_conf()


def test_samples_are_files_that_our_programs_read(installed: Path) -> None:
    for name in ("moorage.conf.sample", "agent.conf.sample"):
        conf = settings.read([installed / files.PACKAGE.samples / name])
        assert isinstance(conf, cfg.ConfigOpts)


def test_every_rule_is_in_the_sample_of_policies() -> None:
    sample = samples.policy_yaml()
    for rule in policies.list_rules():
        assert f'#"{rule.name}": ' in sample


def test_pages_name_every_command_and_every_option(made: dict[str, PackagedFile]) -> None:
    text = made["moorage.1"].content.replace("\\", "")
    for words in (".SS moorage host drain", ".SS moorage up", "B --max-parallel", "SH SYNOPSIS"):
        assert words in text
    assert "placement why" in text


@pytest.mark.parametrize("reader", ["groff", "mandoc"])
def test_pages_are_understood_by_those_who_show_them(installed: Path, reader: str) -> None:
    program = need(reader)
    wrong = []
    for page in sorted((installed / files.PACKAGE.share / "man/man1").iterdir()):
        arguments = ["-man", "-ww", "-z", "-Tutf8"] if reader == "groff" else ["-T", "lint", "-W", "warning"]
        ran = subprocess.run([program, *arguments, str(page)], capture_output=True, text=True, check=False)
        told = (ran.stdout + ran.stderr).splitlines()
        wrong += [line for line in told if "missing date" not in line]
    assert wrong == []


def test_units_are_understood_by_systemd(installed: Path) -> None:
    program = need("systemd-analyze")
    for unit in sorted((installed / files.PACKAGE.units).iterdir()):
        ran = subprocess.run(
            [program, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
        )
        told = [
            line
            for line in ran.stderr.splitlines()
            if "is not executable" not in line and unit.name in line.partition(":")[0]
        ]
        assert told == []


def test_guests_outlive_their_agent_and_the_others_are_confined(made: dict[str, PackagedFile]) -> None:
    agent = made["moorage-agent.service"].content
    assert "\nKillMode=process\n" in agent
    assert "--config-file /etc/moorage/agent.conf\n" in agent
    for name, file in made.items():
        if name.endswith(".service"):
            assert f"\nExecStart={BIN}/{name.removesuffix('.service')} " in file.content
            assert "\nType=notify\n" in file.content
            assert (
                "\nExecReload=/bin/sh -c 'kill -HUP $MAINPID'\n" in file.content
            )  # not all have a /bin/kill
            assert ("\nUser=moorage\n" in file.content) is (name != "moorage-agent.service")


def test_a_shell_completes_what_is_typed(installed: Path) -> None:
    bash = need("bash")
    script = installed / files.PACKAGE.share / "bash-completion/completions/moorage"
    asked = (
        f"source {script}; COMP_WORDS=(moorage host dr); COMP_CWORD=2; "
        f'_moorage_completion {Path(sys.executable).parent / "moorage"}; echo "${{COMPREPLY[@]}}"'
    )
    ran = subprocess.run([bash, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["drain", "drains"] or ran.stdout.split() == ["drain"]
