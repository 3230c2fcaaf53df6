"""Images that servers leave behind when they are deleted or reset: somebody has to remove them."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.servers.server import Server
from moorage.db.tables.compute import operations
from moorage.ledger import queue

IMAGING = ("snapshot", "backup", "shelve")
"""Kinds of operations that put a server into an image, as `image_id` in their data says."""
DISCARD = "discard_image"
SHELVED_IMAGE = "shelved_image"
"""Where a server's request keeps the image that it is shelved in."""


def discard(connection: Connection, server: Server, image_id: str, *, even_whole: bool = False) -> None:
    data = {"image_id": image_id, **({"even_whole": True} if even_whole else {})}
    queue.enqueue(connection, server.id, DISCARD, data)


def cancel_all_else(connection: Connection, server: Server) -> None:
    """End what is going on with a server; but an image that it has left behind is still to be removed."""
    queue.cancel(connection, server.id, sparing=(DISCARD,))


def unfinished(connection: Connection, server: Server) -> list[str]:
    """The images that are being made of a server."""
    query = sa.select(operations.c.data).where(
        operations.c.server_id == server.id,
        operations.c.kind.in_(IMAGING),
        operations.c.finished_at.is_(None),
    )
    return [str(data["image_id"]) for data in connection.execute(query).scalars()]


def discard_shelved(connection: Connection, server: Server) -> None:
    """What a server is shelved in that is deleted."""
    shelved = server.request.get(SHELVED_IMAGE)
    if shelved is not None:
        discard(connection, server, str(shelved["id"]), even_whole=True)
