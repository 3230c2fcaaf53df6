"""Addresses that the built-in pool has given out, held against servers."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.conductor.auditing import resting
from moorage.conductor.auditing.contract import AuditCheck, Portion
from moorage.db.tables.compute import addresses, servers
from moorage.ledger.leasing import GIVE_BACK

_PAGE = 1_000


class AddressesCheck(AuditCheck):
    name = CheckName.ADDRESSES
    compares = "addresses of the built-in pool, and servers"

    def look(self) -> Iterator[Portion]:
        last, done = "", 0
        query = (
            sa.select(addresses.c.address, addresses.c.server_uuid, servers.c.node_uuid, servers.c.deleted_at)
            .outerjoin_from(addresses, servers, servers.c.uuid == addresses.c.server_uuid)
            .order_by(addresses.c.address)
            .limit(_PAGE)
        )
        with self._tools.database.read() as connection:
            total = connection.execute(sa.select(sa.func.count()).select_from(addresses)).scalar_one()
        while True:
            with self._tools.database.read() as connection:
                page = connection.execute(query.where(addresses.c.address > last)).all()
            if not page:
                return
            last, done = page[-1].address, done + len(page)
            odd = [Suspect(row.server_uuid) for row in page if row.deleted_at or row.node_uuid is None]
            yield Portion(odd, done, max(done, total))

    def judge(self, suspect: Suspect) -> Drift | None:
        """A server that waits for nothing and is on no host needs no address; shelved ones keep theirs."""
        uuid = suspect.subject
        server = resting.one(self._tools.database, uuid)
        if server is None and resting.is_known(self._tools.database, uuid):
            return None
        address = self._address(uuid)
        if address is None:
            return None
        if server is None:
            return Drift(
                suspect=suspect,
                sentence=f"address {address} is server {uuid}'s, which nobody knows",
                remedy="give it back; not if the database was restored, and the server is there",
            )
        if not server.is_deleted:
            return None
        return Drift(
            suspect=suspect,
            sentence=f"address {address} is server {uuid}'s, which is deleted",
            remedy="give it back",
            safe=True,
            server_uuid=uuid,
            operation=GIVE_BACK,
        )

    def _address(self, server_uuid: str) -> str | None:
        query = sa.select(addresses.c.address).where(addresses.c.server_uuid == server_uuid)
        with self._tools.database.read() as connection:
            return connection.execute(query).scalar_one_or_none()

    def repair(self, drift: Drift) -> None:
        """Of a server that nobody knows: nothing gives it an address again, so late is the same."""

        def forget(connection: Connection) -> None:
            named = sa.select(servers.c.id).where(servers.c.uuid == drift.suspect.subject)
            connection.execute(
                sa.delete(addresses).where(
                    addresses.c.server_uuid == drift.suspect.subject, ~sa.exists(named)
                )
            )

        self._tools.database.transact(forget)
