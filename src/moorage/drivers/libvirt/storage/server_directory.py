"""The directory of a server on this host: its disks, its console log, and what the driver remembers of it.

Hosts may share it. So each has a record of its own in it, and who removes the last record removes the rest.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path

import msgspec

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.libvirt.host.topology import GuestTopology
from moorage.drivers.libvirt.vifs.contract import Vif

_RECORD = ("server.", ".json")
_OWNER = "owner"
_WAITING = "own-"
"""What the names of disks end with, and a token, that wait to take the place of others."""
_ASIDE = "_left"
"""Beside the servers' directories: by node, records of servers that others have forgotten there."""


class Departure(msgspec.Struct, frozen=True):
    """Where a server goes, or went, while it runs."""

    node_uuid: str
    uri: str
    """Of the destination's libvirt."""
    arrived: bool = False


class ServerRecord(msgspec.Struct, frozen=True):
    """What a server is on this host, from before its first device is made until its last one is gone."""

    spec: ServerSpec
    vifs: list[Vif] = []
    """What is plugged, or was about to be."""
    hardware: dict[str, str] = {}
    begun: str = ""
    """The work (`ServerSpec.work`) that its disks are made for."""
    built: str | None = None
    """The same, once all of them are there."""
    done: str | None = None
    """The same, once that has made it run, or not run: it does not start again for it."""
    rescue: ServerSpec | None = None
    """What it is rescued with."""
    topology: GuestTopology = GuestTopology()
    """Where on the host it is, from the moment that it comes until it leaves."""
    token: str = ""
    """A file in the directory by which another host sees whether it is the same one there."""
    origin: str = ""
    """The node that it comes from, and may go back to, if both share this directory."""
    is_expected: bool = False
    """It comes live, and has not come yet."""
    departure: Departure | None = None
    keeps_definition: bool = False
    """Another system has defined it; it is started as that has it, until it is made anew."""
    definition: str = ""
    """What that is, as far as libvirt does not know it better."""
    redefine: bool = False
    """Libvirt has still to be told of it."""
    has_own_disks: bool = False
    """Its disks were made such as those of our own guests are."""
    waiting: str = ""
    """The token of those that have still to take their place."""
    earlier: ServerRecord | None = None
    """What it was before it got another flavor here, until it is certain that it keeps that."""

    def vif(self, port_id: str) -> Vif | None:
        return next((vif for vif in self.vifs if vif.port_id == port_id), None)


def remove_interrupted(instances: Path, node_uuid: str) -> None:
    """Files that an agent of this node did not finish, since it was killed: right after a start, nobody is at
    work on one. Another host may be, on storage that they share.
    """
    for path in instances.glob(f"*/.*.{node_uuid}.*"):
        if path.is_file():
            path.unlink(missing_ok=True)


def left(instances: Path, node_uuid: str) -> list[str]:
    """Servers of this node that others have gone on with, or deleted, while its host was away."""
    return [path.stem for path in (instances / _ASIDE / node_uuid).glob("*.json")]


class ServerDirectory:
    def __init__(self, instances: Path, server_uuid: str, node_uuid: str) -> None:
        self.server_uuid = server_uuid
        self.node_uuid = node_uuid
        self.path = instances / server_uuid

    @property
    def disk(self) -> Path:
        return self.path / "disk"

    @property
    def base(self) -> Path:
        """The image that `disk` lies over."""
        return self.path / "disk.base"

    @property
    def ephemeral(self) -> Path:
        return self.path / "disk.eph0"

    @property
    def swap(self) -> Path:
        return self.path / "disk.swap"

    @property
    def config_drive(self) -> Path:
        return self.path / "disk.config"

    @property
    def kernel(self) -> Path:
        return self.path / "kernel"

    @property
    def ramdisk(self) -> Path:
        return self.path / "ramdisk"

    @property
    def console_log(self) -> Path:
        return self.path / "console.log"

    @property
    def rescue_disk(self) -> Path:
        return self.path / "disk.rescue"

    @property
    def rescue_base(self) -> Path:
        return self.path / "disk.rescue.base"

    @property
    def rescue_config_drive(self) -> Path:
        return self.path / "disk.rescue.config"

    @property
    def before(self) -> Path:
        """The disks as they were before a move to a host that shares this directory, or a resize here."""
        return self.path / "before"

    @property
    def record_path(self) -> Path:
        return self.path / self.node_uuid.join(_RECORD)

    def waiting(self, token: str = "*") -> list[Path]:
        """Disks that wait to take the place of others: those of an adopted guest, made such as ours are."""
        return list(self.path.glob(f"*.{_WAITING}{token}"))

    def waiting_for(self, path: Path, token: str) -> Path:
        return path.with_name(f"{path.name}.{_WAITING}{token}")

    def temporary(self, name: str) -> Path:
        """A name beside the others, for what is renamed when it is whole."""
        return self.path / f".{name}.{self.node_uuid}.{secrets.token_hex(4)}"

    def make(self) -> None:
        """QEMU, which may have an account of its own, reads what is in it, so others may pass."""
        self.path.mkdir(mode=0o755, parents=True, exist_ok=True)

    def read(self) -> ServerRecord | None:
        try:
            content = self.record_path.read_bytes()
        except FileNotFoundError:
            return None
        return msgspec.json.decode(content, type=ServerRecord)

    def require(self) -> ServerRecord:
        record = self.read()
        if record is None:
            raise DriverError(f"server {self.server_uuid} is not on this host")
        return record

    def write(self, record: ServerRecord) -> ServerRecord:
        """DriverError if the server was destroyed meanwhile: it must not come back."""
        self._put(self.record_path, msgspec.json.encode(record))
        return record

    def others(self) -> list[str]:
        """Nodes of other hosts that have a record here: those that share this directory, and the server."""
        first, last = _RECORD
        found = [path.name[len(first) : -len(last)] for path in self.path.glob(f"{first}*{last}")]
        return [node for node in found if node != self.node_uuid]

    def records_of_others(self) -> list[ServerRecord]:
        found = (ServerDirectory(self.path.parent, self.server_uuid, node).read() for node in self.others())
        return [record for record in found if record is not None]

    def is_done_elsewhere(self) -> bool:
        """Whether it is a whole server of another host."""
        return any(record.done is not None for record in self.records_of_others())

    def owner(self) -> str:
        """The node on which the server may be started; empty if nobody has said."""
        try:
            return (self.path / _OWNER).read_text()
        except FileNotFoundError:
            return ""

    def own(self, node_uuid: str) -> None:
        """From now on it is this node's to start."""
        self._put(self.path / _OWNER, node_uuid.encode())

    def forget_others(self) -> None:
        """Their hosts are dead, or as good as that: nothing here is for them any more. Their records are put
        aside: one that comes back after all has to know what it had plugged."""
        for node_uuid in self.others():
            aside = self._aside(node_uuid)
            aside.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                os.replace(self.path / node_uuid.join(_RECORD), aside)

    def plugged(self) -> list[Vif]:
        """All that this host may have plugged for the server, also if others have forgotten it here."""
        record = self.read()
        return [*([] if record is None else record.vifs), *self._left_plugged()]

    def _left_plugged(self) -> list[Vif]:
        try:
            return msgspec.json.decode(self._aside(self.node_uuid).read_bytes(), type=ServerRecord).vifs
        except FileNotFoundError:
            return []

    def forget_left(self) -> None:
        """What this host had plugged is not there any more."""
        aside = self._aside(self.node_uuid)
        aside.unlink(missing_ok=True)
        for empty in (aside.parent, aside.parent.parent):
            with contextlib.suppress(OSError):  # others are in there, too, or it was never made
                empty.rmdir()

    def _aside(self, node_uuid: str) -> Path:
        return self.path.parent / _ASIDE / node_uuid / f"{self.server_uuid}.json"

    def remove(self) -> None:
        """All that is this host's; the record last, since it knows what is plugged.

        Each host takes its record away before it looks for others again: so one of two sees that it is the
        last, and removes what they shared.
        """
        self.forget_left()
        if not self.path.exists():
            return
        if self.others():
            self._leave()
            if self.others():
                return
        for path in self.path.iterdir():
            if path != self.record_path:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        self.record_path.unlink(missing_ok=True)
        shutil.rmtree(self.path, ignore_errors=True)

    def _leave(self) -> None:
        """Another host goes on with it: with the disks as they were, if it was there before us."""
        record, others = self.read(), self.others()
        if record is not None:
            if self.owner() == self.node_uuid:
                self._give_back(record, others)
            shutil.rmtree(self.before, ignore_errors=True)
            if record.token:
                (self.path / record.token).unlink(missing_ok=True)
        self.record_path.unlink(missing_ok=True)

    def _give_back(self, record: ServerRecord, others: list[str]) -> None:
        if record.origin not in others:
            (self.path / _OWNER).unlink(missing_ok=True)
            return
        if record.built is not None:
            for path in self.before.glob("*"):
                os.replace(path, self.path / path.name)
        self.own(record.origin)

    def _put(self, path: Path, content: bytes) -> None:
        made = self.temporary(path.name)
        try:
            descriptor = os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileNotFoundError:
            raise DriverError(f"server {self.server_uuid} is not on this host") from None
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(made, path)
        finally:
            with contextlib.suppress(OSError):
                made.unlink(missing_ok=True)
