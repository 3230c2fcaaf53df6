"""A libvirt host for a test module; skipped where libvirt can neither be found nor installed.

QEMU runs as an account of its own there, as the packages have it, and has to reach the directories of tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.libvirt.stand import DirectoryImages, LibvirtStand, empty_image
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


@pytest.fixture
def stand(lab: LibvirtLab, tmp_path: Path) -> Iterator[LibvirtStand]:
    """A driver on the host, of which nothing may be left at the end."""
    images = DirectoryImages(tmp_path / "images")
    image_id = images.add(empty_image(tmp_path), "qcow2")
    made = LibvirtStand(lab.hosts["h1"], tmp_path, images, image_id)
    yield made
    made.driver.close()
    assert made.leftovers() == []
