"""Servers that came from a dead host with the same storage: `Spawning` goes on with their disks.

That host keeps its record of them beside ours for some time: an evacuation that fails after all, because
ports did not come up, is undone here like a build, and must not take the only disk along.
"""

from __future__ import annotations

import logging
import time

from moorage.drivers.libvirt.backend import Backend

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
