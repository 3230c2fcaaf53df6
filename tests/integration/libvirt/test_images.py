"""Images from strangers: what is in a file counts, not what is said of it; and it is fetched once."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from moorage.drivers.contract import DriverError
from moorage.drivers.image_store import ImageStoreError
from moorage.drivers.libvirt.storage.image_cache import DIRECTORY, ImageCache
from moorage.drivers.libvirt.storage.qemu_img import BadImageError
from tests.integration.libvirt.stand import DirectoryImages
from tests.lab.libvirt import programs
from tests.support.debian import Unavailable

SIZE = 1 << 20
_SECRET = b"the host's own"


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    try:
        programs.install()
    except Unavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture
def images(tmp_path: Path) -> DirectoryImages:
    return DirectoryImages(tmp_path / "images")


@pytest.fixture
def instances(tmp_path: Path) -> Path:
    (tmp_path / "instances" / "server").mkdir(parents=True)
    return tmp_path / "instances"


@pytest.fixture
def cache(instances: Path, images: DirectoryImages) -> ImageCache:
    return ImageCache(instances, images, "h1")


def qemu_img(*words: str | Path) -> None:
    subprocess.run(["qemu-img", *(str(word) for word in words)], check=True, capture_output=True)


def go_on() -> None:
    """Nobody interrupts."""


def content(directory: Path) -> list[str]:
    return [path.name for path in (directory / DIRECTORY).glob("*")]


def secret(directory: Path) -> Path:
    path = directory / "secret"
    path.write_bytes(_SECRET.ljust(SIZE, b"."))
    return path


def with_backing_file(directory: Path) -> tuple[Path, str]:
    path = directory / "evil"
    qemu_img("create", "-f", "qcow2", "-F", "raw", "-b", secret(directory), path)
    return path, "qcow2"


def with_data_file(directory: Path) -> tuple[Path, str]:
    path = directory / "evil"
    qemu_img(
        "create", "-f", "qcow2", "-o", f"data_file={secret(directory)},data_file_raw=on", path, str(SIZE)
    )
    return path, "qcow2"


def qcow2_that_is_said_to_be_raw(directory: Path) -> tuple[Path, str]:
    return with_backing_file(directory)[0], "raw"


def raw_that_is_said_to_be_qcow2(directory: Path) -> tuple[Path, str]:
    return secret(directory), "qcow2"


def vmdk_that_names_another_file(directory: Path) -> tuple[Path, str]:
    path = directory / "evil.vmdk"
    qemu_img("create", "-f", "vmdk", "-o", "subformat=monolithicFlat", path, str(SIZE))
    text = path.read_text(errors="surrogateescape")
    path.write_text(text.replace("evil-flat.vmdk", str(secret(directory))), errors="surrogateescape")
    return path, "vmdk"


def nonsense_that_is_said_to_be_a_disk_of_another_cloud(directory: Path) -> tuple[Path, str]:
    return secret(directory), "ploop"


EVIL = (
    with_backing_file,
    with_data_file,
    qcow2_that_is_said_to_be_raw,
    raw_that_is_said_to_be_qcow2,
    vmdk_that_names_another_file,
    nonsense_that_is_said_to_be_a_disk_of_another_cloud,
)


@pytest.mark.parametrize("evil", EVIL)
def test_an_evil_image_is_refused_on_every_host_and_leaves_nothing(
    evil: object, tmp_path: Path, images: DirectoryImages, cache: ImageCache, instances: Path
) -> None:
    assert callable(evil)
    path, claimed = evil(tmp_path)
    image_id = images.add(path, claimed)
    with pytest.raises(BadImageError) as refused:
        cache.link(image_id, instances / "server" / "disk.base", go_on)
    assert not refused.value.retry_elsewhere
    assert _SECRET.decode() not in str(refused.value)
    assert content(instances) == []
    assert list((instances / "server").iterdir()) == []


@pytest.mark.parametrize(
    ("image_format", "options"),
    [("raw", ""), ("qcow2", ""), ("vmdk", "subformat=streamOptimized"), ("vdi", "")],
)
def test_an_honest_image_becomes_raw(
    image_format: str,
    options: str,
    tmp_path: Path,
    images: DirectoryImages,
    cache: ImageCache,
    instances: Path,
) -> None:
    made, base = tmp_path / "made", instances / "server" / "disk.base"
    more = ("-o", options) if options else ()
    qemu_img("convert", "-f", "raw", "-O", image_format, *more, secret(tmp_path), made)
    cache.link(images.add(made, image_format), base, go_on)
    assert base.read_bytes().startswith(_SECRET)
    assert base.stat().st_size == SIZE


def test_what_does_not_match_its_checksum_is_not_used(
    tmp_path: Path, images: DirectoryImages, cache: ImageCache, instances: Path
) -> None:
    image_id = images.add(secret(tmp_path), "raw")
    images.path(image_id).write_bytes(b"something else")
    with pytest.raises(ImageStoreError) as refused:
        cache.link(image_id, instances / "server" / "disk.base", go_on)
    assert refused.value.retry_elsewhere
    assert content(instances) == []


def test_many_servers_share_one_download(
    tmp_path: Path, images: DirectoryImages, cache: ImageCache, instances: Path
) -> None:
    image_id, downloads = images.add(secret(tmp_path), "raw"), []
    images.hold = lambda: downloads.append(threading.get_ident())
    targets = [instances / f"server-{number}" / "disk.base" for number in range(4)]
    for target in targets:
        target.parent.mkdir()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda target: cache.link(image_id, target, go_on), targets))
    assert len(downloads) == 1
    assert len({target.stat().st_ino for target in targets}) == 1


def test_an_image_is_kept_while_it_is_used_and_for_some_time_after(
    tmp_path: Path, images: DirectoryImages, cache: ImageCache, instances: Path
) -> None:
    image_id, base = images.add(secret(tmp_path), "raw"), instances / "server" / "disk.base"
    cache.link(image_id, base, go_on)
    cached = next((instances / DIRECTORY).iterdir())
    long_ago = time.time() - 3600
    os.utime(cached, (long_ago, long_ago))
    assert cache.remove_unused(60) == [], "a server has it"
    base.unlink()
    assert cache.remove_unused(7200) == [], "it may be wanted again"
    cache.link(image_id, base, go_on)
    base.unlink()
    assert cache.remove_unused(60) == [], "it was wanted just now"
    assert cache.remove_unused(0) == [cached.name]


def test_an_image_that_leaves_the_cache_while_it_is_wanted_is_fetched_again(
    tmp_path: Path, images: DirectoryImages, cache: ImageCache, instances: Path
) -> None:
    image_id = images.add(secret(tmp_path), "raw")
    stop = threading.Event()

    def remove() -> None:
        while not stop.is_set():
            cache.remove_unused(0)

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        for number in range(20):
            target = instances / "server" / f"{number}"
            cache.link(image_id, target, go_on)
            assert target.read_bytes().startswith(_SECRET)
    finally:
        stop.set()
        remover.join()


def test_who_is_interrupted_leaves_nothing(
    tmp_path: Path, images: DirectoryImages, cache: ImageCache, instances: Path
) -> None:
    image_id = images.add(secret(tmp_path), "raw")
    asked = []

    def interrupted() -> None:
        asked.append(1)
        if len(asked) > 1:
            raise DriverError("destroyed")

    with pytest.raises(DriverError, match="destroyed"):
        cache.link(image_id, instances / "server" / "disk.base", interrupted)
    assert content(instances) == []


def test_a_host_removes_its_own_downloads_that_a_crash_interrupted(
    tmp_path: Path, images: DirectoryImages, cache: ImageCache, instances: Path
) -> None:
    image_id = images.add(secret(tmp_path), "raw")
    found: list[str] = []
    images.hold = lambda: found.extend(content(instances))
    cache.fetch(image_id, go_on)
    base = content(instances)
    (instances / DIRECTORY / found[0]).write_bytes(b"half of it")
    others = [found[0].replace(".h1.", ".h2."), found[0].replace(".h1.", ".site.h1.")]
    for name in others:
        (instances / DIRECTORY / name).write_bytes(b"half of it")
    cache.remove_interrupted()
    assert sorted(content(instances)) == sorted([*base, *others])
