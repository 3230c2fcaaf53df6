"""The servers that ask, as they are told about themselves; and the one thing that they may tell."""

from __future__ import annotations

import os

import msgspec
from sqlalchemy.engine import Connection

from moorage.compute.servers import server_spec, servers
from moorage.compute.servers.guest_password import ENCRYPTED_PASSWORD
from moorage.compute.servers.server import Server
from moorage.compute.servers.server_errors import ServerNotFound
from moorage.db.database import Database
from moorage.drivers.contract import ServerSpec
from moorage.drivers.guest_metadata import GuestIdentity

_SEED_BYTES = 512


class Asker(msgspec.Struct, frozen=True):
    """Who asks, as somebody else vouches for."""

    server_uuid: str
    project_id: str | None = None
    host: str | None = None


class PasswordKnownError(Exception):
    """A guest tells its password once."""


class MetadataGuests:
    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, asker: Asker) -> Server | None:
        """The server, if it is what whoever vouches for it takes it for."""
        try:
            with self._database.read() as connection:
                server = servers.find(connection, asker.server_uuid)
        except ServerNotFound:
            return None
        if asker.project_id is not None and server.project_id != asker.project_id:
            return None
        return None if asker.host is not None and server.host != asker.host else server

    def tell_password(self, server: Server, password: str) -> None:
        """PasswordKnownError if the guest has told one before."""

        def write(connection: Connection) -> None:
            found = servers.lock(connection, server.uuid)
            if found.request.get(ENCRYPTED_PASSWORD):
                raise PasswordKnownError
            servers.update(connection, found.id, request={**found.request, ENCRYPTED_PASSWORD: password})

        self._database.transact(write)


def identity(server: Server) -> GuestIdentity:
    """As the config drive has it, but for the seed, which is another one each time."""
    spec = msgspec.convert({**server_spec.of(server), "node_uuid": server.node_uuid or ""}, ServerSpec)
    return msgspec.structs.replace(GuestIdentity.of(spec), random_seed=os.urandom(_SEED_BYTES))
