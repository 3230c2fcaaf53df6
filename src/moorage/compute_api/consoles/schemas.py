"""JSON schemas of what is sent to get at a server's console."""

from __future__ import annotations

from moorage.compute_api.microversions import Microversion
from moorage.compute_api.schema_types import Json, closed, tolerant, wrapped
from moorage.http.schema import Schema, VersionedSchema

_LENGTH: Json = {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]+$", "minimum": -1}
CONSOLE_OUTPUT = Schema(wrapped("os-getConsoleOutput", closed({"length": _LENGTH})))


def _type(*known: str) -> Json:
    return {"type": "string", "enum": list(known)}


def _open(protocols: tuple[str, ...], types: tuple[str, ...]) -> Json:
    properties = {"protocol": _type(*protocols), "type": _type(*types)}
    return wrapped("remote_console", closed(properties, ("protocol", "type")))


_PROTOCOLS = ("vnc", "spice", "serial", "rdp")
_TYPES = ("novnc", "xvpvnc", "spice-html5", "serial", "rdp-html5")
OPEN = VersionedSchema(
    {
        Microversion.REMOTE_CONSOLES: _open(_PROTOCOLS, _TYPES),
        Microversion.MKS_CONSOLES: _open((*_PROTOCOLS, "mks"), (*_TYPES, "webmks")),
        Microversion.DIRECT_SPICE_CONSOLES: _open((*_PROTOCOLS, "mks"), (*_TYPES, "webmks", "spice-direct")),
    }
)


def _old(action: str, *types: str) -> Schema:
    return Schema(wrapped(action, closed({"type": _type(*types)}, ("type",))))


OPEN_VNC = _old("os-getVNCConsole", "novnc", "xvpvnc")
OPEN_SERIAL = _old("os-getSerialConsole", "serial")
OPEN_SPICE = _old("os-getSPICEConsole", "spice-html5")
SHOW_TOKEN = VersionedSchema(
    {Microversion.FIRST: tolerant({}), Microversion.DIRECT_SPICE_CONSOLES: closed({})}
)
