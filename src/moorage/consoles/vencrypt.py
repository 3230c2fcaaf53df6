"""From the first words of a guest's screen to TLS: VeNCrypt, with a certificate and no password.

So little of RFB 3.8 that nothing of the guest, and nothing of the browser, passes before TLS does.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable

from moorage.consoles.bounded_reader import BoundedReader
from moorage.consoles.errors import ConsoleHungUpError, ConsoleInsecureError, ConsoleUnreachableError

VERSION = b"RFB 003.008\n"
_VERSIONS = re.compile(rb"RFB (\d{3})\.(\d{3})\n")
_NEEDED_VERSION = (3, 8)
_VENCRYPT = 19
_VENCRYPT_VERSION = b"\x00\x02"
_X509_NONE = 260
_LONGEST_REASON = 1024

Wrap = Callable[[socket.socket], ssl.SSLSocket]


class NoTlsOfferedError(ConsoleInsecureError):
    """It is a screen, but none with TLS that proves who it is."""


def secure(connected: socket.socket, reader: BoundedReader, wrap: Wrap) -> ssl.SSLSocket:
    """What is left is the same as after a handshake without any security: the client's first message."""
    _agree_on_version(reader)
    _choose_vencrypt(reader)
    _choose_certificates(reader)
    secured = wrap(connected)
    try:
        inside = reader.through(secured)
        if inside.number(4):
            raise ConsoleUnreachableError(f"it refused: {_reason(inside)}")
    except ConsoleHungUpError as error:
        secured.close()
        raise ConsoleInsecureError(f"{error} once it could see [consoles] guest_cert") from error
    except BaseException:
        secured.close()
        raise
    return secured


def _agree_on_version(reader: BoundedReader) -> None:
    said = reader.exactly(len(VERSION))
    version = _VERSIONS.fullmatch(said)
    if version is None:
        raise ConsoleUnreachableError(f"it is no screen: it said {said!r}")
    if (int(version[1]), int(version[2])) < _NEEDED_VERSION:
        raise NoTlsOfferedError(f"it offers no TLS: it speaks {said[:-1].decode()}")
    reader.send(VERSION)


def _choose_vencrypt(reader: BoundedReader) -> None:
    count = reader.number(1)
    if not count:
        raise ConsoleUnreachableError(f"it refused: {_reason(reader)}")
    offered = sorted(reader.exactly(count))
    if _VENCRYPT not in offered:
        raise NoTlsOfferedError(f"it offers no TLS: its security types are {offered}")
    reader.send(bytes([_VENCRYPT]))


def _choose_certificates(reader: BoundedReader) -> None:
    version = reader.exactly(2)
    if version < _VENCRYPT_VERSION:
        raise NoTlsOfferedError(f"it offers no TLS that we know: VeNCrypt {version[0]}.{version[1]}")
    reader.send(_VENCRYPT_VERSION)
    if reader.number(1):
        raise ConsoleUnreachableError("it refused VeNCrypt 0.2")
    offered = sorted(reader.number(4) for _ in range(reader.number(1)))
    if _X509_NONE not in offered:
        raise NoTlsOfferedError(f"it offers no TLS with a certificate alone: VeNCrypt's types {offered}")
    reader.send(_X509_NONE.to_bytes(4, "big"))
    if reader.number(1) != 1:
        raise ConsoleUnreachableError("it refused TLS, which it had offered")


def _reason(reader: BoundedReader) -> str:
    """As much of it as a line of a log should have."""
    return repr(reader.exactly(min(reader.number(4), _LONGEST_REASON)))
