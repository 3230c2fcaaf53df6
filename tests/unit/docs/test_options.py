"""Options that the pages name: there is such an option, ours or one of a library that reads our files."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache

import pytest
from keystoneauth1 import loading
from keystonemiddleware import opts as middleware_options
from oslo_config import cfg
from oslo_policy import opts as policy_options

from moorage.cli import settings
from tests.support.moorage import PROGRAMS
from tests.unit.docs.pages import Page, pages

NEIGHBOURS = ("placement_client", "neutron", "glance", "ironic", "keystone_authtoken", "oslo_limit")
"""The sections with which keystoneauth logs in somewhere."""
FOREIGN = {"api", "placement_database", "Unit", "Service", "Install"}
"""Sections of Ironic's, the reference Placement's and systemd's files, which pages name, too."""
_NAMED = re.compile(r"^\[(\w+)\] (\w+)")
_SECTION, _SETTING = re.compile(r"^\[(\w+)\]"), re.compile(r"^(\w+)\s*=")


@cache
def known() -> set[tuple[str, str]]:
    libraries: tuple[tuple[str, list[cfg.Opt]], ...] = (
        *policy_options.list_opts(),
        *middleware_options.list_auth_token_opts(),
    )
    found = _of_messaging() | {
        (group, option.dest) for group, options in (*settings.list_opts(), *libraries) for option in options
    }
    login = [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(),
        *(option for kind in ("password", "http_basic", "none") for option in _of_plugin(kind)),
    ]
    return found | {(group, option.dest.replace("-", "_")) for group in NEIGHBOURS for option in login}


def _of_messaging() -> set[tuple[str, str]]:
    """Asked for in a process of its own: who asks oslo.messaging for its options gets eventlet with them."""
    command = [str(PROGRAMS / "oslo-config-generator"), "--namespace", "oslo.messaging"]
    sample = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(_settings(sample.replace("\n#", "\n")))


def _of_plugin(kind: str) -> list[cfg.Opt]:
    return list(loading.get_auth_plugin_conf_options(kind))


def _named(page: Page) -> Iterator[tuple[str, str]]:
    for code in page.inline():
        if found := _NAMED.match(code):
            yield found[1], found[2]
    for block in page.blocks("ini"):
        yield from _settings(block)


def _settings(file: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in file.splitlines():
        if found := _SECTION.match(line):
            section = found[1]
        elif (found := _SETTING.match(line)) and section:
            yield section, found[1]


NAMED = sorted({(page.name, *option) for page in pages() for option in _named(page)})


def test_there_are_many() -> None:
    assert len(NAMED) > 100


@pytest.mark.parametrize(("page", "section", "name"), NAMED)
def test_an_option_on_a_page_can_be_set(page: str, section: str, name: str) -> None:
    assert section in FOREIGN or (section, name) in known()
