"""What failed on which machine, and which machines are kept out for it until somebody has looked at them.

A bad image fails wherever it is tried. So failures of an image that failed on several machines, and runs
nowhere, are nobody's fault but its own: else one user could have every machine kept out.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa
from prometheus_client import Counter
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.compute import nodes, servers
from moorage.db.tables.machines import machine_failures as failures
from moorage.db.tables.machines import quarantined_machines as quarantine
from moorage.db.upsert import insert_if_absent
from moorage.drivers.machine_failures import AvoidedMachines, MachineFailure, QuarantinePolicy

LOG = logging.getLogger(__name__)
FAILURES = Counter("moorage_machine_failures_total", "Failures of machines, by step.", ["step"])
QUARANTINED = Counter("moorage_machines_quarantined_total", "Machines that were put into quarantine.")

_KEPT = timedelta(days=90)
"""For so long the history of a machine is kept."""
_MOST_TOLD = 5_000
"""Machines that hosts are told of, those that failed last."""


class FailureRecord(NamedTuple):
    uuid: str
    machine_uuid: str
    failed_at: datetime
    step: str
    reason: str
    host: str
    server_uuid: str
    forgiven_at: datetime | None


class _Failed(NamedTuple):
    machine_uuid: str
    image_ref: str
    step: str
    reason: str


class Quarantine(NamedTuple):
    machine_uuid: str
    since: datetime
    reason: str


def record(
    connection: Connection, host: str, told: Sequence[MachineFailure], policy: QuarantinePolicy
) -> None:
    """Write down what a host tells, and keep out machines that failed too often by its policy."""
    if not told:
        return
    images = _images(connection, {failure.server_uuid for failure in told})
    rows = [
        {
            "uuid": failure.uuid,
            "machine_uuid": failure.machine_uuid,
            "host": host,
            "server_uuid": failure.server_uuid,
            "image_ref": images.get(failure.server_uuid, ""),
            "step": failure.step,
            "reason": failure.reason,
            "failed_at": utcnow(),
        }
        for failure in told
    ]
    for row in rows:
        new = insert_if_absent(connection, failures, key=["uuid"]).values(row).returning(failures.c.step)
        if connection.execute(new).first() is not None:
            FAILURES.labels(row["step"]).inc()
    connection.execute(sa.delete(failures).where(failures.c.failed_at < utcnow() - _KEPT))
    if policy.after:
        for machine in sorted({failure.machine_uuid for failure in told}):
            _judge(connection, machine, policy)


def _judge(connection: Connection, machine_uuid: str, policy: QuarantinePolicy) -> None:
    since = utcnow() - timedelta(seconds=policy.window)
    recent = [
        row
        for row in _unforgiven(connection, since, [machine_uuid])
        if not (row.image_ref and _is_bad_image(connection, row.image_ref, since))
    ]
    if len(recent) < policy.after:
        return
    newest = recent[-1]
    often = f"{len(recent)} failures in {policy.window / 3600:.3g} h"
    reason = f"{often}, the last one ({newest.step}): {newest.reason}"
    values = {"machine_uuid": machine_uuid, "since": utcnow(), "reason": reason}
    new = insert_if_absent(connection, quarantine, key=["machine_uuid"]).values(values)
    if connection.execute(new.returning(quarantine.c.since)).first() is not None:
        QUARANTINED.inc()
        LOG.error("machine %s is in quarantine until it is released: %s", machine_uuid, reason)


def _unforgiven(
    connection: Connection, since: datetime, machine_uuids: Collection[str] | None = None
) -> list[_Failed]:
    """Oldest first."""
    query = sa.select(
        failures.c.machine_uuid, failures.c.image_ref, failures.c.step, failures.c.reason
    ).where(failures.c.failed_at >= since, failures.c.forgiven_at.is_(None))
    if machine_uuids is not None:
        query = query.where(among(connection, failures.c.machine_uuid, machine_uuids))
    return [
        _Failed(*row) for row in connection.execute(query.order_by(failures.c.failed_at, failures.c.uuid))
    ]


def _is_bad_image(connection: Connection, image_ref: str, since: datetime) -> bool:
    """It failed on several machines of late, and no server that was made from it runs."""
    machines = sa.select(sa.func.count(failures.c.machine_uuid.distinct())).where(
        failures.c.image_ref == image_ref, failures.c.failed_at >= since
    )
    if connection.execute(machines).scalar_one() < 2:
        return False
    ran = sa.select(servers.c.id).where(servers.c.image_ref == image_ref, servers.c.launched_at.is_not(None))
    return connection.execute(ran.limit(1)).first() is None


def avoided(connection: Connection, window: float) -> AvoidedMachines:
    """What hosts have to know."""
    since = utcnow() - timedelta(seconds=window)
    counts: dict[str, int] = {}
    for row in reversed(_unforgiven(connection, since)):
        if row.machine_uuid in counts or len(counts) < _MOST_TOLD:
            counts[row.machine_uuid] = counts.get(row.machine_uuid, 0) + 1
    kept_out = connection.execute(sa.select(quarantine.c.machine_uuid)).scalars()
    return AvoidedMachines(frozenset(kept_out), counts)


def release(connection: Connection, machine_uuids: Collection[str]) -> list[str]:
    """Somebody has looked at these: what they did is forgiven, and stays in their history. Which of them
    were in quarantine."""
    if not machine_uuids:
        return []
    named = among(connection, failures.c.machine_uuid, machine_uuids)
    forgiven = sa.update(failures).where(named, failures.c.forgiven_at.is_(None))
    connection.execute(forgiven.values(forgiven_at=utcnow()))
    failing = among(connection, nodes.c.uuid, machine_uuids) & (nodes.c.build_failures > 0)
    connection.execute(sa.update(nodes).where(failing).values(build_failures=0))
    freed = sa.delete(quarantine).where(among(connection, quarantine.c.machine_uuid, machine_uuids))
    found = list(connection.execute(freed.returning(quarantine.c.machine_uuid)).scalars())
    for machine_uuid in found:
        LOG.warning("machine %s is released from quarantine", machine_uuid)
    return found


def quarantined(
    connection: Connection, machine_uuids: Collection[str] | None = None
) -> dict[str, Quarantine]:
    query = sa.select(quarantine.c.machine_uuid, quarantine.c.since, quarantine.c.reason)
    if machine_uuids is not None:
        query = query.where(among(connection, quarantine.c.machine_uuid, machine_uuids))
    return {row.machine_uuid: Quarantine(*row) for row in connection.execute(query)}


def count_quarantined(connection: Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(quarantine)).scalar_one()


def history(connection: Connection) -> list[FailureRecord]:
    """Newest first."""
    columns = [failures.c[name] for name in FailureRecord._fields]
    query = sa.select(*columns).order_by(failures.c.failed_at.desc(), failures.c.uuid)
    return [FailureRecord(*row) for row in connection.execute(query)]


def has_failed(machine_uuid: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Whether there is anything that nobody has forgiven."""
    return sa.exists().where(failures.c.machine_uuid == machine_uuid, failures.c.forgiven_at.is_(None))


def _images(connection: Connection, server_uuids: Collection[str]) -> dict[str, str]:
    query = sa.select(servers.c.uuid, servers.c.image_ref).where(
        among(connection, servers.c.uuid, server_uuids)
    )
    return dict(connection.execute(query).all())
