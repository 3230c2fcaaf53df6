"""Snapshots: what is on a server's disk now becomes an image; a guest that runs goes on, and stays defined.

QEMU copies what differs from the base to a file of ours, then that is made one image. If the agent ends in
the middle, the copy goes on in QEMU and its file is of no use: the next attempt ends it and begins anew.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import libvirt

from moorage.drivers.calls import DriverCall
from moorage.drivers.contract import DriverError, UnchangedError
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import domain_xml, guest_options, live_xml
from moorage.drivers.libvirt.storage import qemu_img
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory

LOG = logging.getLogger(__name__)

_PREFIX = "snapshot-"
_LOOKS = 0.1
_COPY = (
    libvirt.VIR_DOMAIN_BLOCK_COPY_REUSE_EXT
    | libvirt.VIR_DOMAIN_BLOCK_COPY_SHALLOW
    | libvirt.VIR_DOMAIN_BLOCK_COPY_TRANSIENT_JOB
)


class NobodysCopyError(DriverError):
    """See `status_files`."""

    def __init__(self, server_uuid: str) -> None:
        super().__init__(
            f"libvirtd was killed when a copy of the disk of server {server_uuid} ended, and takes it for "
            "being copied ever since: restart libvirtd, which guests do not notice"
        )


class Snapshots:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def snapshot(self, server_uuid: str, image_id: str) -> None:
        """The upload is refused by who keeps the image, if it has data already."""
        backend = self._backend
        with backend.at_work(server_uuid, "snapshot") as call:
            directory = backend.directory(server_uuid)
            if backend.store.describe(image_id).size:
                with backend.step(server_uuid, call):  # who uploaded it may have been killed right after
                    _clear(directory)
                return
            with self._workplace(server_uuid, directory, call) as place:
                whole = place / "whole.qcow2"
                if self._is_active(server_uuid):
                    delta = place / "delta.qcow2"
                    self._copy(server_uuid, directory, delta, call)
                    self._flatten(delta, whole, call)
                    delta.unlink()
                else:
                    self._flatten(directory.disk, whole, call)
                backend.calls.check(call)
                backend.store.upload(image_id, whole, "qcow2", {})

    def _flatten(self, source: Path, target: Path, call: DriverCall) -> None:
        qemu_img.convert(source, "qcow2", target, "qcow2", partial(self._backend.calls.check, call))

    def _copy(self, server_uuid: str, directory: ServerDirectory, delta: Path, call: DriverCall) -> None:
        """All that the disk has at one moment, with the guest's own buffers written out if it can do that."""
        backend = self._backend
        if not directory.base.exists():
            raise UnchangedError("what the server's disk lies over is not known: it has to be stopped before")
        target = self._root_target(server_uuid, directory)
        size = qemu_img.info(directory.disk, "qcow2").virtual_size
        with backend.step(server_uuid, call):
            qemu_img.create_overlay(delta, directory.base, "raw", size)
            self._begin_copy(server_uuid, target, _copy_xml(delta))
        try:
            while not self._is_in_step(server_uuid, target):
                call.wait(_LOOKS)
                backend.calls.check(call)
            with self._quiet(server_uuid, directory):
                backend.domains.on(
                    server_uuid, "end the copy of", lambda domain: domain.blockJobAbort(target, 0)
                )
        except BaseException:
            with contextlib.suppress(DriverError):
                self._end_copies(server_uuid)
            raise

    def _begin_copy(self, server_uuid: str, target: str, xml: str) -> None:
        """Libvirtd may have begun the one that a killed agent had asked for, since we ended all that were."""

        def call(domain: Any) -> None:
            try:
                domain.blockCopy(target, xml, {}, _COPY)
            except libvirt.libvirtError as error:
                if error.get_error_code() != libvirt.VIR_ERR_BLOCK_COPY_ACTIVE:
                    raise
                _end_copies(domain)
                domain.blockCopy(target, xml, {}, _COPY)

        self._backend.domains.on(server_uuid, "copy the disk of", call)

    def _is_in_step(self, server_uuid: str, target: str) -> bool:
        info = self._backend.domains.on(
            server_uuid, "follow the copy of", lambda domain: domain.blockJobInfo(target, 0)
        )
        if not info:
            raise DriverError("the copy of the server's disk has ended too early")
        return bool(info["cur"] == info["end"] and info["end"])

    @contextmanager
    def _quiet(self, server_uuid: str, directory: ServerDirectory) -> Iterator[None]:
        """With the guest's file systems frozen, if it has an agent that does it."""
        options = guest_options.of(directory.require().spec)
        if not options.guest_agent:
            yield
            return
        try:
            self._backend.domains.on(server_uuid, "freeze the disks of", lambda domain: domain.fsFreeze())
        except DriverError as error:
            if options.quiesce:
                raise
            LOG.info("server %s is copied as it runs: %s", server_uuid, error)
        try:
            yield
        finally:
            self._thaw(server_uuid)

    def _thaw(self, server_uuid: str) -> None:
        with contextlib.suppress(DriverError):  # it was not frozen
            self._backend.domains.on(server_uuid, "thaw the disks of", lambda domain: domain.fsThaw())

    @contextmanager
    def _workplace(self, server_uuid: str, directory: ServerDirectory, call: DriverCall) -> Iterator[Path]:
        """A directory of its own; what an earlier attempt has left is cleared away first."""
        with self._backend.step(server_uuid, call):
            self._end_copies(server_uuid)
            if guest_options.of(directory.require().spec).guest_agent:
                self._thaw(server_uuid)
            _clear(directory)
            place = directory.temporary(_PREFIX)
            place.mkdir(mode=0o755)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _end_copies(self, server_uuid: str) -> None:
        self._backend.domains.on(server_uuid, "end copies of", _end_copies)

    def _root_target(self, server_uuid: str, directory: ServerDirectory) -> str:
        found = [
            disk.target
            for disk in live_xml.disks(self._backend.domains.live(server_uuid))
            if disk.source == str(directory.disk)
        ]
        if not found:
            raise DriverError(f"server {server_uuid} does not use {directory.disk}")
        return found[0]

    def _is_active(self, server_uuid: str) -> bool:
        return self._backend.domains.on(server_uuid, "look at", lambda domain: bool(domain.isActive()))


def _end_copies(domain: Any) -> None:
    if not domain.isActive():
        return
    server_uuid = domain.UUIDString()
    for disk in live_xml.disks(live_xml.parse(domain.XMLDesc())):
        if disk.is_mirrored and Path(disk.source).parent.name == server_uuid:
            try:
                domain.blockJobAbort(disk.target, 0)
            except libvirt.libvirtError as error:
                if error.get_error_code() == libvirt.VIR_ERR_INVALID_ARG:
                    raise NobodysCopyError(server_uuid) from error


def _clear(directory: ServerDirectory) -> None:
    """What earlier attempts have left."""
    for old in directory.path.glob(f".{_PREFIX}*"):
        shutil.rmtree(old, ignore_errors=True)


def _copy_xml(path: Path) -> str:
    disk = Element("disk", {"type": "file"})
    SubElement(disk, "source", {"file": str(path)})
    SubElement(disk, "driver", {"type": "qcow2"})
    return domain_xml.text(disk)
