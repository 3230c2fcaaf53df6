"""Tags and metadata: what users write on their servers."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError, NotFoundError
from moorage.compute.quotas.overruns import require_room
from moorage.compute.quotas.quotas import Limits
from moorage.compute.servers import servers
from moorage.compute.servers.server import Server

MAX_TAGS = 50


def require_few(metadata: Mapping[str, str], limits: Limits) -> None:
    refusal = f"Maximum number of metadata items exceeds {limits['metadata_items']}"
    require_room(limits, "metadata_items", 0, len(metadata), refusal)


def set_metadata(
    connection: Connection, server: Server, given: Mapping[str, str], *, limits: Limits, replace: bool
) -> dict[str, str]:
    """Add items, or put them in the place of all that are there; what the server has then."""
    metadata = dict(given) if replace else {**server.metadata, **given}
    require_few(metadata, limits)
    servers.update(connection, server.id, metadata=metadata)
    return metadata


def metadata_item(server: Server, key: str) -> str:
    if key not in server.metadata:
        raise NotFoundError("Metadata item was not found")
    return server.metadata[key]


def drop_metadata(connection: Connection, server: Server, key: str) -> None:
    metadata_item(server, key)
    rest = {name: value for name, value in server.metadata.items() if name != key}
    servers.update(connection, server.id, metadata=rest)


def require_tag(server: Server, tag: str) -> None:
    if tag not in server.tags:
        raise NotFoundError(f"Server {server.uuid} has no tag '{tag}'")


def add_tag(connection: Connection, server: Server, tag: str) -> bool:
    """Whether the tag is new."""
    if len(server.tags) >= MAX_TAGS:
        raise ComputeError(f"The number of tags exceeded the per-server limit {MAX_TAGS}")
    if tag in server.tags:
        return False
    set_tags(connection, server, [*server.tags, tag])
    return True


def set_tags(connection: Connection, server: Server, tags: list[str]) -> list[str]:
    """Each tag once, in order."""
    unique = sorted(set(tags))
    servers.update(connection, server.id, tags=unique)
    return unique


def drop_tag(connection: Connection, server: Server, tag: str) -> None:
    if tag not in server.tags:
        raise NotFoundError(f"Instance {server.uuid} has no tag '{tag}'")
    set_tags(connection, server, [known for known in server.tags if known != tag])
