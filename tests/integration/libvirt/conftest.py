"""A libvirt host for a test module; skipped where libvirt can neither be found nor installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.libvirt import hosts, programs
from tests.lab.libvirt.hosts import LibvirtLab
from tests.support.debian import Unavailable


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
