"""Images that servers leave behind when they are deleted or reset: somebody has to remove them."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.servers.server import Server
from moorage.db.tables.compute import operations
from moorage.ledger import queue

_SHELVE = "shelve"
IMAGING = ("snapshot", "backup", _SHELVE)
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


_UNFINISHED = sa.select(operations.c.kind, operations.c.data).where(
    operations.c.server_id == sa.bindparam("server"),
    operations.c.kind.in_(IMAGING),
    operations.c.finished_at.is_(None),
)


class UnfinishedImage(NamedTuple):
    image_id: str
    even_whole: bool
    """Nobody asked for it as such: a server was to be shelved in it, and is not."""


def unfinished(connection: Connection, server: Server) -> list[UnfinishedImage]:
    """The images that are being made of a server; their data may have come just now."""
    needed = server.request.get(SHELVED_IMAGE, {}).get("id")
    found = connection.execute(_UNFINISHED, {"server": server.id})
    return [
        UnfinishedImage(str(data["image_id"]), kind == _SHELVE and data["image_id"] != needed)
        for kind, data in found
    ]


def discard_shelved(connection: Connection, server: Server) -> None:
    """What a server is shelved in that is deleted."""
    shelved = server.request.get(SHELVED_IMAGE)
    if shelved is not None:
        discard(connection, server, str(shelved["id"]), even_whole=True)
