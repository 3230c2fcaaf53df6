"""Files of a server's directory, from and to another host: through its libvirt, by a storage pool of our own.

A pool that outlives its maker names a directory, and changes nothing in it; the next copy of the same server,
or its end on that host, removes it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree.ElementTree import Element, SubElement

import libvirt

from moorage.drivers.contract import DriverError
from moorage.drivers.libvirt.domain.domain_xml import text
from moorage.drivers.libvirt.storage.qemu_img import Check

_PREFIX = "moorage-"


@contextmanager
def pool(connection: Any, server_uuid: str, path: str) -> Iterator[Any]:
    """The server's directory on the host of this connection."""
    forget_pool(connection, server_uuid)
    made = Element("pool", {"type": "dir"})
    SubElement(made, "name").text = _PREFIX + server_uuid
    SubElement(SubElement(made, "target"), "path").text = path
    opened = connection.storagePoolCreateXML(text(made), 0)
    try:
        yield opened
    finally:
        forget_pool(connection, server_uuid)


def forget_pool(connection: Any, server_uuid: str) -> None:
    try:
        connection.storagePoolLookupByName(_PREFIX + server_uuid).destroy()
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_NO_STORAGE_POOL:
            raise


def download(opened: Any, name: str, target: Path, size: int, check: Check) -> None:
    """A file of the pool; holes stay holes. What is at `target` after an error is not to be used."""
    volume = opened.storageVolLookupByName(name)
    stream = opened.connect().newStream(0)
    with target.open("xb") as file:
        try:
            volume.download(stream, 0, 0, libvirt.VIR_STORAGE_VOL_DOWNLOAD_SPARSE_STREAM)
            stream.sparseRecvAll(_writer(check), _skipper(check), file)
        except BaseException:
            with contextlib.suppress(libvirt.libvirtError):
                stream.abort()
            raise
        stream.finish()
        file.truncate(file.tell())
        file.flush()
        os.fsync(file.fileno())
    found = target.stat().st_size
    if found != size:
        raise DriverError(f"{name} has {found} bytes here and {size} on its host", retry_elsewhere=True)


def upload(opened: Any, name: str, source: Path, check: Check) -> None:
    """A small file, to where the pool is; what is there under its name is overwritten."""
    size = source.stat().st_size
    with contextlib.suppress(libvirt.libvirtError):
        opened.storageVolLookupByName(name).delete(0)
    made = Element("volume")
    SubElement(made, "name").text = name
    SubElement(made, "capacity").text = str(size)
    SubElement(SubElement(made, "target"), "format", {"type": "raw"})
    volume = opened.createXML(text(made), 0)
    if not size:
        return
    stream = opened.connect().newStream(0)
    with source.open("rb") as file:
        try:
            volume.upload(stream, 0, size, 0)
            stream.sendAll(_reader(check, size), file)
        except BaseException:
            with contextlib.suppress(libvirt.libvirtError):
                stream.abort()
            raise
        stream.finish()


def _writer(check: Check) -> Any:
    def write(_: Any, data: bytes, file: BinaryIO) -> int:
        check()
        return file.write(data)

    return write


def _skipper(check: Check) -> Any:
    def skip(_: Any, length: int, file: BinaryIO) -> None:
        check()
        file.seek(length, os.SEEK_CUR)

    return skip


def _reader(check: Check, size: int) -> Any:
    """So much, and no more: a log may grow while it is read."""
    left = size

    def read(_: Any, most: int, file: BinaryIO) -> bytes:
        nonlocal left
        check()
        data = file.read(min(most, left))
        left -= len(data)
        return data

    return read
