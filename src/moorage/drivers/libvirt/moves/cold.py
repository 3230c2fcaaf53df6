"""A server is shut down here, and started elsewhere; until that is final, it can be started here again.

Its disks are as they were when it left, whatever happens to it there: a destination works on copies of its
own, or, where both hosts see one directory, leaves copies behind (`before`) that a way back restores.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from moorage.drivers.calls import DriverCall
from moorage.drivers.contract import DriverClosedError, DriverError, Parcel, ServerSpec
from moorage.drivers.image_store import ImageStoreError
from moorage.drivers.libvirt.actions.power import PowerButton
from moorage.drivers.libvirt.actions.spawning import Spawning
from moorage.drivers.libvirt.actions.starting import Starting
from moorage.drivers.libvirt.adoption.adopted_guests import AdoptedGuests
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import guest_options
from moorage.drivers.libvirt.moves import copying, keeping, parcel, peer
from moorage.drivers.libvirt.moves.parcel import CopiedFile, HandedOver
from moorage.drivers.libvirt.storage import disks, qemu_img
from moorage.drivers.libvirt.storage.qemu_img import Check
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory, ServerRecord


class ColdMoves:
    def __init__(
        self,
        backend: Backend,
        starting: Starting,
        power: PowerButton,
        spawning: Spawning,
        adopted: AdoptedGuests,
    ) -> None:
        self._backend = backend
        self._starting = starting
        self._power = power
        self._spawning = spawning
        self._adopted = adopted

    # ------------------------------------------------------------ the source

    def check_resize(self, server_uuid: str, flavor: Mapping[str, Any]) -> None:
        if self._backend.directory(server_uuid).disk.exists():
            disks.require_room(flavor, self._adopted.root_size(server_uuid))

    def hand_over(self, server_uuid: str) -> Parcel:
        backend = self._backend
        with backend.at_work(server_uuid, "hand_over") as call:
            directory = backend.directory(server_uuid)
            if directory.require().rescue is not None:
                raise DriverError("a server that is being rescued can't move")
            self._adopted.require_movable(server_uuid)
            self._power.shut_down(server_uuid, call, self._power.patience(server_uuid))
            self._adopted.settle(server_uuid, call)
            with backend.step(server_uuid, call):
                record = keeping.forget(directory)  # of a resize before, which was final
                token = record.token or f"token.{secrets.token_hex(16)}"
                record = directory.write(msgspec.structs.replace(record, token=token, origin=""))
                (directory.path / token).touch()
            return parcel.pack_handed_over(self._handed_over(directory, record))

    def _handed_over(self, directory: ServerDirectory, record: ServerRecord) -> HandedOver:
        backend = self._backend
        found = [
            CopiedFile(path.name, path.stat().st_size)
            for path in (*_made(directory), *_from_images(directory), directory.console_log)
            if path.exists()
        ]
        return HandedOver(
            backend.node_uuid,
            backend.settings.moves.uri_of(backend.host),
            str(directory.path),
            record.token,
            qemu_img.info(directory.disk, "qcow2").virtual_size,
            found,
            dict(record.hardware),
            record.definition if record.keeps_definition else "",
        )

    # ------------------------------------------------------------ the destination

    def take_over(self, spec: ServerSpec, handed: HandedOver) -> int:
        """If it fails, nothing is left of it here, and it can go on where it was."""
        backend = self._backend
        backend.require_node(spec.node_uuid)
        with backend.calls.begin(spec.uuid, "take_over") as call:
            known = backend.directory(spec.uuid).read()
            if known is not None and known.begun == spec.work and known.done is not None:
                return backend.domains.power(spec.uuid)
            disks.require_room(spec.flavor, handed.disk_size)
            try:
                return self._take_over(call, spec, handed)
            except DriverClosedError:
                raise
            except Exception:
                self._spawning.undo(spec.uuid, call)
                raise

    def _take_over(self, call: DriverCall, spec: ServerSpec, handed: HandedOver) -> int:
        backend, directory = self._backend, self._backend.directory(spec.uuid)
        check: Check = partial(backend.calls.check, call)
        with backend.step(spec.uuid, call):
            known = directory.read()
            if known is None or known.begun != spec.work:
                if backend.domains.power_if_there(spec.uuid) is not None:
                    raise DriverError(f"server {spec.uuid} is on this host already")
                if known is not None:  # an earlier visit that nobody undid
                    self._spawning.remove(spec.uuid)
                self._come(directory, spec, handed)
        is_shared = bool(directory.require().origin)
        if directory.require().built is None:
            if is_shared:
                keeping.keep(directory, check)
            else:
                self._fetch(directory, spec, handed, check)
            with backend.step(spec.uuid, call):
                directory.write(msgspec.structs.replace(directory.require(), built=spec.work))
        with backend.step(spec.uuid, call):
            if backend.domains.power_if_there(spec.uuid) is None:
                disks.grow(directory, spec)
            if spec.power_on:
                self._starting.start(spec.uuid)
            else:
                self._starting.define(spec.uuid)
            directory.write(msgspec.structs.replace(directory.require(), done=spec.work))
        return backend.domains.power(spec.uuid)

    def _come(self, directory: ServerDirectory, spec: ServerSpec, handed: HandedOver) -> None:
        """The directory is ours now, or ours, too. `whereabouts.require_here` is the other side of it."""
        backend = self._backend
        directory.make()
        origin = handed.node_uuid if handed.node_uuid in directory.others() else ""
        with backend.places.chosen(spec) as topology:
            hardware = handed.hardware | spec.hardware
            record = ServerRecord(spec, [], hardware, spec.work, topology=topology, origin=origin)
            if handed.definition:
                record = self._adopted.with_definition(record, handed.definition, has_own_disks=True)
            directory.write(record)
        directory.own(backend.node_uuid)
        if origin and not (directory.path / handed.token).exists():
            raise DriverError(f"server {spec.uuid} is not handed over any more")

    def _fetch(self, directory: ServerDirectory, spec: ServerSpec, handed: HandedOver, check: Check) -> None:
        """Base images from where all get them; if they are no longer there, from the source, as all else."""
        files = {file.name: file for file in handed.files}
        options = guest_options.of(spec)
        images = {
            directory.base: str((spec.image or {}).get("id", "")),
            directory.kernel: options.kernel_id,
            directory.ramdisk: options.ramdisk_id,
        }
        for path, image_id in images.items():
            # Whether what another system has made of an image is what we make of it, nobody can say.
            is_ours = path.name in files and not handed.definition
            if is_ours and self._is_cached(image_id, path, files[path.name].size, check):
                del files[path.name]
        missing = [file for file in files.values() if not (directory.path / file.name).exists()]
        if missing:
            # A late copy reads what the source keeps, and writes under a name of its own.
            with (
                peer.connected(handed.uri) as connection,
                copying.pool(connection, spec.uuid, handed.path) as pool,
            ):
                for file in missing:
                    _copy(pool, directory, file, handed, check)

    def _is_cached(self, image_id: str, path: Path, size: int, check: Check) -> bool:
        """Whether the image is there, and the one that the server was made from."""
        if not image_id:
            return False
        try:
            self._backend.images.link(image_id, path, check)
        except ImageStoreError:
            return False
        if path.stat().st_size != size:
            path.unlink()
            return False
        return True


def _made(directory: ServerDirectory) -> list[Path]:
    """What guests write to, and the config drive."""
    return [*keeping.writable(directory), directory.config_drive]


def _from_images(directory: ServerDirectory) -> list[Path]:
    return [directory.base, directory.kernel, directory.ramdisk]


def _copy(
    pool: object, directory: ServerDirectory, file: CopiedFile, handed: HandedOver, check: Check
) -> None:
    made = directory.temporary(file.name)
    try:
        copying.download(pool, file.name, made, file.size, check)
        if file.name == directory.disk.name:
            found = qemu_img.info(made, "qcow2")
            if found.virtual_size != handed.disk_size:
                raise DriverError("the disk that came is not the one that was sent", retry_elsewhere=True)
            if found.backing_filename:
                qemu_img.rebase_in_place(made, directory.base, "raw")
        os.replace(made, directory.path / file.name)
    except FileNotFoundError:
        raise DriverError(f"server {directory.server_uuid} is not on this host") from None
    finally:
        with contextlib.suppress(OSError):
            made.unlink()
