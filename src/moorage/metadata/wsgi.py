"""The metadata service as a WSGI application, for those who vouch for guests."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import sqlalchemy as sa
from oslo_config import cfg
from prometheus_client import Counter

from moorage.compute.servers.guest_password import ENCRYPTED_PASSWORD
from moorage.db import health
from moorage.db.database import Database
from moorage.http import public_address
from moorage.http.auth import StartResponse, Wsgi
from moorage.http.caller import Environ
from moorage.http.concurrency import ConcurrencyLimit
from moorage.http.entry import EntryMiddleware
from moorage.http.errors import TITLES
from moorage.metadata import signature, tree
from moorage.metadata.guests import Asker, MetadataGuests, PasswordKnownError, identity
from moorage.metadata.tree import Document

LOG = logging.getLogger(__name__)
REFUSED = Counter("moorage_metadata_refused_total", "Requests that nobody vouched for rightly.")
_LONGEST_PASSWORD = 1020
_MISSING = "{} header is missing from request."


class _RefusedError(Exception):
    def __init__(self, status: int, detail: str = "") -> None:
        super().__init__(detail)
        self.status = status


class MetadataApplication:
    def __init__(self, guests: MetadataGuests, secret: str | None) -> None:
        self._guests = guests
        self._secret = secret

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Always with a type: Neutron's agents take an answer without one for a failure."""
        try:
            status, document = 200, self._answer(environ)
        except _RefusedError as refusal:
            status, document = refusal.status, Document(f"{refusal or TITLES[refusal.status]}\n".encode())
        except sa.exc.OperationalError as error:
            LOG.error("the database did not serve a guest: %s", error)
            status, document = 503, Document(b"The database can't be reached.\n")
        headers = [("content-type", document.content_type), ("content-length", str(len(document.content)))]
        start_response(f"{status} {TITLES.get(status, 'OK')}", headers)
        return [document.content]

    def _answer(self, environ: Environ) -> Document:
        path = environ.get("PATH_INFO", "")
        asker = self._asker(environ)
        server = self._guests.find(asker)
        if server is None:
            LOG.warning("nothing is known of server %s, for which metadata was asked", asker.server_uuid)
            raise _RefusedError(404)
        if environ["REQUEST_METHOD"] == "POST" and tree.is_password(path):
            try:
                self._guests.tell_password(server, _password(environ))
            except PasswordKnownError as error:
                raise _RefusedError(409) from error
            return Document(b"")
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            raise _RefusedError(400, "GET and POST only are supported.")
        password = str(server.request.get(ENCRYPTED_PASSWORD) or "")
        document = tree.look_up(identity(server), path, password)
        if document is None:
            raise _RefusedError(404)
        return document

    def _asker(self, environ: Environ) -> Asker:
        """Whoever signs the server's id knows it to be the guest; with its project, or with its host."""
        given = {
            name: environ.get(f"HTTP_{name.upper().replace('-', '_')}")
            for name in (signature.INSTANCE_ID, signature.SIGNATURE, signature.TENANT_ID, signature.HOST)
        }
        required = [signature.INSTANCE_ID, signature.SIGNATURE]
        if given[signature.HOST] is None:
            required.append(signature.TENANT_ID)
        for name in required:
            if given[name] is None:
                raise _RefusedError(400, _MISSING.format(name))
        server_uuid, told = str(given[signature.INSTANCE_ID]), str(given[signature.SIGNATURE])
        if not self._secret or not signature.matches(self._secret, server_uuid, told):
            REFUSED.inc()
            LOG.warning("a request for the metadata of server %s is not signed as it should be", server_uuid)
            raise _RefusedError(403, "Invalid proxy request signature.")
        return Asker(server_uuid, given[signature.TENANT_ID], given[signature.HOST])


def _password(environ: Environ) -> str:
    try:
        length = int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError as error:
        raise _RefusedError(400) from error
    if length > _LONGEST_PASSWORD:
        raise _RefusedError(400, "Request is too large.")
    try:
        text: str = environ["wsgi.input"].read(length).decode()
    except UnicodeDecodeError as error:
        raise _RefusedError(400, "The password is no text.") from error
    if "\0" in text:
        raise _RefusedError(400, "The password is no text.")
    return text


def build(conf: cfg.ConfigOpts, database: Database) -> Wsgi:
    application = MetadataApplication(MetadataGuests(database), conf.metadata.shared_secret)
    stack = public_address.middleware(conf, application)
    return EntryMiddleware(
        ConcurrencyLimit(stack, conf.metadata.threads), "metadata", health.checks(database)
    )
