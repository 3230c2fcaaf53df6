"""A libvirt host for a test module; skipped where libvirt can neither be found nor installed.

QEMU runs as an account of its own there, as the packages have it, and has to reach the directories of tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.libvirt import hosts, programs
from tests.lab.libvirt.hosts import LibvirtLab
from tests.support.debian import Unavailable


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with hosts.passable_directory() as made:
        yield made


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LibvirtLab]:
    try:
        programs.install()
        programs.use_binding()
    except Unavailable as missing:
        pytest.skip(str(missing))
    with hosts.running(tmp_path_factory.mktemp("libvirt")) as made:
        yield made


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LibvirtLab]:
    try:
        programs.install()
        programs.use_binding()
    except Unavailable as missing:
        pytest.skip(str(missing))
    with hosts.running(tmp_path_factory.mktemp("libvirt"), ("h1", "h2"), connected=True) as made:
        yield made
