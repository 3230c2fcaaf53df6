"""Servers that came from a dead host with the same storage: `Spawning` goes on with their disks.

That host keeps its record of them beside ours for some time: an evacuation that fails after all, because
ports did not come up, is undone here like a build, and must not take the only disk along.
"""

from __future__ import annotations

import logging
import time

from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.storage import server_directory

LOG = logging.getLogger(__name__)

_SETTLED = 3600.0
"""Seconds after which no evacuation is under way any more."""


def settle(backend: Backend, seconds: float = _SETTLED) -> None:
    """From now on servers that were evacuated to this host are removed with their disks, whoever returns."""
    for server_uuid in backend.domains.powers():
        with backend.locks.hold(server_uuid):
            directory = backend.directory(server_uuid)
            record = directory.read()
            if record is None or not record.spec.keep_disk or directory.owner() != backend.node_uuid:
                continue
            age = time.time() - directory.record_path.stat().st_mtime
            if record.done is not None and age > seconds and directory.others():
                LOG.info("server %s stays here: its old host has no part in it any more", server_uuid)
                directory.forget_others()


def forget_left(backend: Backend) -> None:
    """After this host was away: servers whose domains are here are the control plane's to remove, it sees
    them; of the others it does not know that anything was left.
    """
    for server_uuid in server_directory.left(backend.settings.instances_path, backend.node_uuid):
        with backend.locks.hold(server_uuid):
            if backend.domains.power_if_there(server_uuid) is not None:
                continue
            directory = backend.directory(server_uuid)
            if directory.read() is None:  # else it has come back, with the same ports
                for vif in directory.plugged():
                    backend.vifs.unplug(server_uuid, vif)
            directory.forget_left()
