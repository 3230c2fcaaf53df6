"""A driver that only pretends: a host of any size that costs nothing, and that fails when it is told to."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.drivers.calls import Calls, DriverCall, Interruption
from moorage.drivers.contract import (
    PAUSED,
    RUNNING,
    SHUT_DOWN,
    SUSPENDED,
    DriverError,
    Inventory,
    Node,
    Parcel,
    ServerSpec,
)
from moorage.drivers.fake import faults, guest
from moorage.drivers.fake.faults import FaultKind, InjectedFault
from moorage.drivers.fake.serial_line import SerialLines
from moorage.drivers.fake.servers import FakeServer, FakeServers
from moorage.drivers.image_store import ImageStore
from moorage.drivers.machine_uptime import machine_uptime
from moorage.drivers.parts import ConsoleAddress, ConsoleType

_NAMESPACE = uuid.UUID("7c1c1c39-2f7b-4d65-8a24-8a0a5d0f5d11")


@dataclass(frozen=True)
class FakeSettings:
    nodes: int = 1
    vcpus: int = 64
    ram_mb: int = 262_144
    disk_gb: int = 4_096
    cpu_allocation_ratio: float = 4.0
    ram_allocation_ratio: float = 1.0
    disk_allocation_ratio: float = 1.0
    traits: Sequence[str] = ("COMPUTE_NODE",)
    resource_class: str = ""
    """If set, a node has one unit of it and takes one server."""
    faults: dict[str, list[InjectedFault]] = field(default_factory=dict)
    hang_seconds: float = 3600.0

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> FakeSettings:
        options = conf.fake
        try:
            steps = faults.parse_steps(options.faults)
        except ValueError as error:
            raise ConfigError(f"[fake] faults: {error}") from error
        return cls(
            nodes=options.nodes,
            vcpus=options.vcpus,
            ram_mb=options.ram_mb,
            disk_gb=options.disk_gb,
            cpu_allocation_ratio=options.cpu_allocation_ratio,
            ram_allocation_ratio=options.ram_allocation_ratio,
            disk_allocation_ratio=options.disk_allocation_ratio,
            traits=tuple(options.traits),
            resource_class=options.resource_class,
            faults=steps,
            hang_seconds=options.hang_seconds,
        )


class FakeDriver:
    def __init__(
        self, host: str, settings: FakeSettings, directory: Path, images: ImageStore | None = None
    ) -> None:
        """`images` takes snapshots, if there is somebody to take them."""
        self._host = host
        self._settings = settings
        self._images = images
        self._nodes = [_node(host, settings, number) for number in range(settings.nodes)]
        self._node_uuids = {node.uuid for node in self._nodes}
        self._servers = FakeServers(directory / "fake-servers.sqlite")
        self._lock = threading.Lock()
        self._calls = Calls()
        self._serial_lines = SerialLines()

    def nodes(self) -> Sequence[Node]:
        return self._nodes

    def spawn(self, spec: ServerSpec) -> int:
        return self._make("spawn", spec, str(uuid.uuid4()))

    def take_over(self, spec: ServerSpec, parcel: Parcel) -> int:
        """A server that came live runs on as it did, or holds still, if it was paused."""
        return self._make("take_over", spec, str(parcel.get("disk", "")), parcel.get("power"))

    def rebuild(self, spec: ServerSpec) -> int:
        power = RUNNING if spec.power_on else SHUT_DOWN
        with self._calls.begin(spec.uuid, "rebuild") as call:
            self._suffer(faults.of_metadata(spec.metadata), call)
            with self._lock:
                self._calls.check(call)
                server = self._present(spec.uuid)
                self._servers.put(_server(spec, server.node_uuid, power, str(uuid.uuid4())))
        return power

    def destroy(self, server_uuid: str, node_uuid: str) -> None:
        self._calls.interrupt(server_uuid, Interruption.DESTROYED)
        with self._calls.begin(server_uuid, "destroy") as call:
            self._suffer(self._asked(server_uuid), call)
            with self._lock:
                self._calls.check(call)
                self._servers.remove(server_uuid)
        self._serial_lines.hang_up(server_uuid)

    def interrupt(self, server_uuid: str) -> None:
        self._calls.interrupt(server_uuid, Interruption.DESTROYED)

    def start(self, server_uuid: str, node_uuid: str) -> int:
        return self._set_power("start", server_uuid, RUNNING)

    def stop(self, server_uuid: str, node_uuid: str) -> int:
        return self._set_power("stop", server_uuid, SHUT_DOWN)

    def reboot(self, server_uuid: str, node_uuid: str, *, hard: bool) -> int:
        return self._set_power("reboot", server_uuid, RUNNING)

    def pause(self, server_uuid: str, node_uuid: str) -> int:
        return self._set_power("pause", server_uuid, PAUSED, RUNNING)

    def unpause(self, server_uuid: str, node_uuid: str) -> int:
        return self._set_power("unpause", server_uuid, RUNNING, PAUSED)

    def suspend(self, server_uuid: str, node_uuid: str) -> int:
        return self._set_power("suspend", server_uuid, SUSPENDED, RUNNING, PAUSED)

    def resume(self, server_uuid: str, node_uuid: str) -> int:
        return self._set_power("resume", server_uuid, RUNNING, SUSPENDED, SHUT_DOWN)

    def rescue(self, spec: ServerSpec) -> int:
        with self._changing("rescue", spec.uuid) as server:
            self._servers.put(msgspec.structs.replace(server, power=RUNNING, rescue_image=_image(spec)))
        return RUNNING

    def unrescue(self, server_uuid: str, node_uuid: str) -> int:
        with self._changing("unrescue", server_uuid) as server:
            self._servers.put(msgspec.structs.replace(server, power=RUNNING, rescue_image=""))
        return RUNNING

    def trigger_crash_dump(self, server_uuid: str, node_uuid: str) -> None:
        with self._changing("trigger_crash_dump", server_uuid) as server:
            _require_running(server)
            self._servers.put(msgspec.structs.replace(server, crash_dumps=server.crash_dumps + 1))

    def change_password(self, server_uuid: str, node_uuid: str, password: str) -> None:
        with self._changing("change_password", server_uuid) as server:
            _require_running(server)
            digest = hashlib.sha256(password.encode()).hexdigest()
            self._servers.put(msgspec.structs.replace(server, password_hash=digest))

    def snapshot(self, server_uuid: str, node_uuid: str, image_id: str) -> None:
        """The image has the name of what is on the disk."""
        with self._calls.begin(server_uuid, "snapshot") as call:
            self._suffer(self._asked(server_uuid), call)
            self._calls.check(call)
            disk = self._present(server_uuid).disk
            if self._images is not None:
                with TemporaryDirectory() as directory:
                    file = Path(directory) / "disk"
                    file.write_text(disk)
                    self._images.upload(image_id, file, "raw", {})

    def hand_over(self, server_uuid: str, node_uuid: str) -> Parcel:
        self._set_power("hand_over", server_uuid, SHUT_DOWN)
        return {"disk": self._present(server_uuid).disk}

    def resize_in_place(self, spec: ServerSpec) -> int:
        power = RUNNING if spec.power_on else SHUT_DOWN
        with self._changing("take_over", spec.uuid) as server:
            if server.resize == spec.work and server.before is not None:
                return server.power
            made = _server(spec, server.node_uuid, power, server.disk)
            before = msgspec.structs.replace(server, before=None, resize="")
            self._servers.put(msgspec.structs.replace(made, resize=spec.work, before=before))
        return power

    def keep_resize(self, server_uuid: str, node_uuid: str) -> None:
        with self._changing("keep_resize", server_uuid) as server:
            self._servers.put(msgspec.structs.replace(server, before=None, resize=""))

    def undo_resize(self, server_uuid: str, node_uuid: str) -> None:
        self._calls.interrupt(server_uuid, Interruption.DESTROYED)
        with self._changing("undo_resize", server_uuid) as server:
            if server.before is not None:
                self._servers.put(msgspec.structs.replace(server.before, power=SHUT_DOWN))

    def expect(self, spec: ServerSpec) -> Parcel:
        self._require_node(spec)
        with self._calls.begin(spec.uuid, "expect") as call:
            self._suffer(faults.of_metadata(spec.metadata), call)
            with self._lock:
                self._calls.check(call)
                self._check_room(spec)
        return {"host": self._host}

    def live_migrate(self, server_uuid: str, node_uuid: str, destination: Parcel) -> Parcel:
        with self._changing("live_migrate", server_uuid) as server:
            power = server.power if server.sent_with is None else server.sent_with
            self._servers.put(msgspec.structs.replace(server, power=SHUT_DOWN, sent_with=power))
        return {"disk": server.disk, "power": power}

    def abort_live_migration(self, server_uuid: str) -> None:
        self._calls.interrupt(server_uuid, Interruption.ABORTED, "live_migrate")

    def hurry_live_migration(self, server_uuid: str) -> None:
        self._calls.interrupt(server_uuid, Interruption.HURRIED, "live_migrate")

    def recall(self, server_uuid: str) -> ServerSpec:
        server = self._present(server_uuid)
        known = server.spec or ServerSpec(server_uuid, "", "", "", server.node_uuid, {})
        return msgspec.structs.replace(known, node_uuid=server.node_uuid)

    def attach_interface(self, server_uuid: str, node_uuid: str, port: Mapping[str, Any]) -> None:
        self._set_interface("attach_interface", server_uuid, str(port["id"]), attached=True)

    def detach_interface(self, server_uuid: str, node_uuid: str, port_id: str) -> None:
        self._set_interface("detach_interface", server_uuid, port_id, attached=False)

    def console_log(self, server_uuid: str, node_uuid: str, lines: int | None) -> str:
        return guest.console_log(self._looked_at("console_log", server_uuid), lines)

    def console(self, server_uuid: str, node_uuid: str, console_type: ConsoleType) -> ConsoleAddress:
        server = self._looked_at("console", server_uuid)
        if console_type is not ConsoleType.SERIAL or server.power != RUNNING:
            raise DriverError(f"server {server_uuid} has no {console_type} console")
        return ConsoleAddress("127.0.0.1", self._serial_lines.port(server_uuid))

    def diagnostics(self, server_uuid: str, node_uuid: str) -> dict[str, Any]:
        return guest.diagnostics(self._looked_at("diagnostics", server_uuid))

    def power(self, server_uuid: str, node_uuid: str) -> int:
        return self._present(server_uuid).power

    def servers(self) -> dict[str, int]:
        return {server.uuid: server.power for server in self._servers.all().values()}

    def progress(self) -> dict[str, int]:
        return {}

    def placed(self) -> dict[str, str]:
        """Which node each server is on: what a test holds against the control plane's books."""
        return {server.uuid: server.node_uuid for server in self._servers.all().values()}

    def close(self) -> None:
        with self._lock:
            self._calls.close()
        self._servers.close()
        self._serial_lines.close()

    def _make(self, step: str, spec: ServerSpec, disk: str, power: int | None = None) -> int:
        """A server that was not here."""
        self._require_node(spec)
        with self._calls.begin(spec.uuid, step) as call:
            known = self._servers.get(spec.uuid)
            if known is not None and known.node_uuid == spec.node_uuid:
                return known.power
            self._suffer(faults.of_metadata(spec.metadata), call)
            if power is None:
                power = RUNNING if spec.power_on else SHUT_DOWN
            with self._lock:
                self._calls.check(call)
                self._check_room(spec)
                self._servers.put(_server(spec, spec.node_uuid, power, disk))
        return power

    def _set_power(self, step: str, server_uuid: str, power: int, *before: int) -> int:
        """It has to be there already, or in one of those `before`, if there are any."""
        with self._changing(step, server_uuid) as server:
            if before and server.power not in (power, *before):
                raise DriverError(f"a server of power state {server.power} can't {step}")
            self._servers.put(msgspec.structs.replace(server, power=power, sent_with=None))
        if power == SHUT_DOWN:
            self._serial_lines.hang_up(server_uuid)
        return power

    def _set_interface(self, step: str, server_uuid: str, port_id: str, *, attached: bool) -> None:
        with self._changing(step, server_uuid) as server:
            others = server.interfaces - {port_id}
            now = others | {port_id} if attached else others
            self._servers.put(msgspec.structs.replace(server, interfaces=now))

    @contextmanager
    def _changing(self, step: str, server_uuid: str) -> Iterator[FakeServer]:
        """The server, which nobody else changes meanwhile; what shall go wrong with the step has done so."""
        with self._calls.begin(server_uuid, step) as call:
            self._suffer(self._asked(server_uuid), call)
            with self._lock:
                self._calls.check(call)
                yield self._present(server_uuid)

    def _looked_at(self, step: str, server_uuid: str) -> FakeServer:
        with self._calls.begin(server_uuid, step) as call:
            self._suffer(self._asked(server_uuid), call)
        return self._present(server_uuid)

    def _require_node(self, spec: ServerSpec) -> None:
        if spec.node_uuid not in self._node_uuids:
            raise DriverError(f"host {self._host} has no node {spec.node_uuid}", retry_elsewhere=True)

    def _present(self, server_uuid: str) -> FakeServer:
        server = self._servers.get(server_uuid)
        if server is None:
            raise DriverError(f"server {server_uuid} is not on host {self._host}")
        return server

    def _check_room(self, spec: ServerSpec) -> None:
        known = self._servers.get(spec.uuid)
        if known is not None:
            raise DriverError(f"server {spec.uuid} is on node {known.node_uuid} already")
        others = self._servers.on_node(spec.node_uuid) if self._settings.resource_class else ()
        if others:
            raise DriverError(f"node {spec.node_uuid} has a server already", retry_elsewhere=True)

    def _asked(self, server_uuid: str) -> dict[str, list[InjectedFault]]:
        server = self._servers.get(server_uuid)
        return {} if server is None else faults.of_metadata(server.metadata)

    def _suffer(self, asked: dict[str, list[InjectedFault]], call: DriverCall) -> None:
        """Let the faults of this step strike; what the server asks for wins over the configuration."""
        for fault in asked.get(call.step, self._settings.faults.get(call.step, ())):
            if not fault.strikes():
                continue
            if fault.kind in (FaultKind.DELAY, FaultKind.HANG):
                call.wait(fault.seconds if fault.kind is FaultKind.DELAY else self._settings.hang_seconds)
                self._calls.check(call)
            if fault.kind is FaultKind.HANG and call.hurried:
                continue
            if fault.kind in (FaultKind.FAIL, FaultKind.FAIL_HERE, FaultKind.HANG):
                raise DriverError(
                    f"the fake driver was told that {call.step} shall {fault.kind.value}",
                    retry_elsewhere=fault.kind is not FaultKind.FAIL,
                )


def _server(spec: ServerSpec, node_uuid: str, power: int, disk: str) -> FakeServer:
    return FakeServer(
        spec.uuid,
        node_uuid,
        power,
        dict(spec.metadata),
        disk,
        _image(spec),
        interfaces=frozenset(str(port["id"]) for port in spec.network),
        ram_mb=int(spec.flavor.get("ram", 0)),
        flavor=str(spec.flavor.get("id", "")),
        spec=msgspec.structs.replace(spec, admin_password=""),
    )


def _require_running(server: FakeServer) -> None:
    if server.power != RUNNING:
        raise DriverError(f"server {server.uuid} does not run")


def _image(spec: ServerSpec) -> str:
    return str((spec.image or {}).get("id", ""))


def _node(host: str, settings: FakeSettings, number: int) -> Node:
    name = host if settings.nodes == 1 else f"{host}-node-{number:05}"
    return Node(
        uuid=str(uuid.uuid5(_NAMESPACE, f"{host}/{name}")),
        name=name,
        hypervisor_type="fake",
        inventories=_inventories(settings),
        traits=list(settings.traits),
        facts={
            "supported_instances": [["x86_64", "fake", "hvm"], ["aarch64", "fake", "hvm"]],
            "hypervisor_version": 1000,
            "host_ip": "127.0.0.1",
            "cpu_info": {"arch": "x86_64", "vendor": "fake", "model": "fake", "features": []},
            "vcpus": settings.vcpus,
            "memory_mb": settings.ram_mb,
            "local_gb": settings.disk_gb,
            "uptime": machine_uptime(),
        },
    )


def _inventories(settings: FakeSettings) -> dict[str, Inventory]:
    if settings.resource_class:
        return {settings.resource_class: Inventory(total=1, max_unit=1)}
    amounts = {
        "VCPU": (settings.vcpus, settings.cpu_allocation_ratio),
        "MEMORY_MB": (settings.ram_mb, settings.ram_allocation_ratio),
        "DISK_GB": (settings.disk_gb, settings.disk_allocation_ratio),
    }
    return {
        name: Inventory(total=total, max_unit=total, allocation_ratio=ratio)
        for name, (total, ratio) in amounts.items()
    }
