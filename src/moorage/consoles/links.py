"""The way from the proxy to a console."""

from __future__ import annotations

import logging
import socket
import ssl
import time
from typing import NamedTuple

from moorage.compute.consoles.tokens import ConsoleGrant
from moorage.consoles import vencrypt
from moorage.consoles.bounded_reader import BoundedReader
from moorage.consoles.errors import ConsoleInsecureError, ConsoleUnreachableError
from moorage.consoles.guest_tls import GuestTls
from moorage.consoles.settings import ConsoleSettings
from moorage.consoles.vencrypt import NoTlsOfferedError
from moorage.core.config import ConfigError
from moorage.drivers.parts import ConsoleAddress, ConsoleType

LOG = logging.getLogger(__name__)
_LONGEST_GREETING = 4096


class ConsoleLink(NamedTuple):
    socket: socket.socket
    is_greeted: bool = False
    """The guest has had its handshake with us: the browser has to have its own."""


class ConsoleLinks:
    def __init__(self, settings: ConsoleSettings) -> None:
        self._tls = settings.guest_tls
        self._seconds = settings.connect_timeout

    def open(self, grant: ConsoleGrant) -> ConsoleLink:
        """A connection to the console, which speaks as it likes from here on; ConsoleUnreachableError."""
        address = grant.address
        try:
            if self._tls is None:
                return self._without_tls(address)
            if grant.console_type is ConsoleType.NOVNC:
                return self._screen(grant, self._tls)
            return self._line(grant, self._tls)
        except (OSError, ValueError, ConfigError, ConsoleUnreachableError) as error:
            kind = ConsoleUnreachableError
            if isinstance(error, ssl.SSLError | ValueError | ConfigError | ConsoleInsecureError):
                kind = ConsoleInsecureError
            where = f"server {grant.server_uuid} on {grant.server_host}, {address.host}:{address.port}"
            raise kind(f"{where}: {error}") from error

    def _without_tls(self, address: ConsoleAddress) -> ConsoleLink:
        if address.tls:
            raise ConsoleInsecureError("it speaks TLS, and [consoles] guest_ca does not say whom to believe")
        return ConsoleLink(self._dial(address)[0])

    def _screen(self, grant: ConsoleGrant, tls: GuestTls) -> ConsoleLink:
        connected, reader = self._dial(grant.address)
        try:
            secured = vencrypt.secure(connected, reader, lambda inner: _wrap(inner, reader, grant, tls))
        except NoTlsOfferedError:
            connected.close()
            if not tls.may_be_plain(grant.server_host):
                raise
            _tell_of(grant)
            return ConsoleLink(self._dial(grant.address)[0])
        except BaseException:
            connected.close()
            raise
        return ConsoleLink(secured, is_greeted=True)

    def _line(self, grant: ConsoleGrant, tls: GuestTls) -> ConsoleLink:
        """Its agent has to say how it speaks: without TLS, our first words would be typed at the guest."""
        if not grant.address.tls and not tls.may_be_plain(grant.server_host):
            raise ConsoleInsecureError("it offers no TLS, as its agent says")
        connected, reader = self._dial(grant.address)
        if not grant.address.tls:
            _tell_of(grant)
            return ConsoleLink(connected)
        try:
            return ConsoleLink(_wrap(connected, reader, grant, tls))
        except BaseException:
            connected.close()
            raise

    def _dial(self, address: ConsoleAddress) -> tuple[socket.socket, BoundedReader]:
        """All that follows has to be done within the time that a connection has, too."""
        ends_at = time.monotonic() + self._seconds
        connected = socket.create_connection((address.host, address.port), self._seconds)
        reader = BoundedReader(connected, ends_at)
        try:
            if address.path:
                _ask_for(reader, address.path)
        except BaseException:
            connected.close()
            raise
        return connected, reader


def _tell_of(grant: ConsoleGrant) -> None:
    """What an operator wants to see end before [consoles] plain_hosts is taken out."""
    LOG.info("a console of server %s on %s is reached without TLS", grant.server_uuid, grant.server_host)


def _wrap(
    connected: socket.socket, reader: BoundedReader, grant: ConsoleGrant, tls: GuestTls
) -> ssl.SSLSocket:
    """With a handshake that ends in time; SSLError if it is not the host that the server is on."""
    connected.settimeout(reader.remaining())
    return tls.context().wrap_socket(connected, server_hostname=tls.name(grant))


def _ask_for(reader: BoundedReader, path: str) -> None:
    """Consoles behind a web server of their own: it is asked to step aside."""
    reader.send(f"CONNECT {path} HTTP/1.1\r\n\r\n".encode())
    told = b""
    while b"\r\n\r\n" not in told:
        if len(told) > _LONGEST_GREETING:
            raise ConsoleUnreachableError("it does not answer as a web server would")
        told += reader.exactly(1)  # what follows the greeting is the console's
    status = told.split(b"\r\n", 1)[0].split()
    if len(status) < 2 or status[1] != b"200":
        raise ConsoleUnreachableError(f"it refused: {told[:80]!r}")
