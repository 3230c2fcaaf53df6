"""A driver of somebody else's, as small as one can be: it writes its servers into a notebook.

It has no more than what every driver has to do, and it is there at once: so one lock is all that it needs.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path

from oslo_config import cfg

from moorage.drivers.contract import (
    RUNNING,
    SHUT_DOWN,
    DriverClosedError,
    DriverError,
    Inventory,
    Node,
    ServerSpec,
)
from moorage.drivers.plugin import DriverContext, Loaded, Plugin

FILE = "notebook.json"
OPTIONS = {"notebook": [cfg.IntOpt("pages", default=8, min=1, help="Servers that a notebook has room for.")]}


class NotebookDriver:
    def __init__(self, host: str, pages: int, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._closed = False
        self._servers: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
        amounts = {"VCPU": pages, "MEMORY_MB": pages * 4096, "DISK_GB": pages * 40}
        self._node = Node(
            uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, host)),
            name=host,
            hypervisor_type="notebook",
            inventories={name: Inventory(total=total) for name, total in amounts.items()},
            traits=["COMPUTE_NODE"],
            facts={"supported_instances": [["x86_64", "notebook", "hvm"]]},
        )

    def nodes(self) -> Sequence[Node]:
        return [self._node]

    def spawn(self, spec: ServerSpec) -> int:
        if spec.node_uuid != self._node.uuid:
            raise DriverError(f"this host has no node {spec.node_uuid}", retry_elsewhere=True)
        with self._lock:
            self._check_open()
            if spec.uuid not in self._servers:
                self._write(spec.uuid, RUNNING if spec.power_on else SHUT_DOWN)
            return self._servers[spec.uuid]

    def destroy(self, server_uuid: str, node_uuid: str) -> None:
        with self._lock:
            self._check_open()
            self._servers.pop(server_uuid, None)
            self._save()

    def start(self, server_uuid: str, node_uuid: str) -> int:
        return self._set_power(server_uuid, RUNNING)

    def stop(self, server_uuid: str, node_uuid: str) -> int:
        return self._set_power(server_uuid, SHUT_DOWN)

    def reboot(self, server_uuid: str, node_uuid: str, *, hard: bool) -> int:
        return self._set_power(server_uuid, RUNNING)

    def power(self, server_uuid: str, node_uuid: str) -> int:
        self._require(server_uuid)
        return self._servers[server_uuid]

    def servers(self) -> dict[str, int]:
        with self._lock:
            return dict(self._servers)

    def progress(self) -> dict[str, int]:
        return {}

    def interrupt(self, server_uuid: str) -> None:
        """No call is at work for longer than it takes to write a line."""

    def close(self) -> None:
        with self._lock:
            self._closed = True

    def _set_power(self, server_uuid: str, power: int) -> int:
        with self._lock:
            self._check_open()
            self._require(server_uuid)
            self._write(server_uuid, power)
        return power

    def _check_open(self) -> None:
        if self._closed:
            raise DriverClosedError

    def _require(self, server_uuid: str) -> None:
        if server_uuid not in self._servers:
            raise DriverError(f"server {server_uuid} is not in the notebook")

    def _write(self, server_uuid: str, power: int) -> None:
        self._servers[server_uuid] = power
        self._save()

    def _save(self) -> None:
        draft = self._file.with_suffix(".draft")
        draft.write_text(json.dumps(self._servers))
        draft.replace(self._file)


def _load(context: DriverContext) -> Loaded:
    return Loaded(NotebookDriver(context.host, context.conf.notebook.pages, context.directory / FILE))


PLUGIN = Plugin(_load, OPTIONS, files=(FILE,))
