"""What proxies in front of us say of a request: the address that it was sent to, and who sent it.

Anybody can write such headers, so they are read only where an operator says that a proxy sets them. A proxy
adds to what it finds: of a list, only as many entries can be trusted as there are proxies of the operator's,
counted from the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_SCHEMES = frozenset({"http", "https"})
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_CLIENT = re.compile(r"\[([0-9a-fA-F:.%a-z]+)\](?::[0-9]+)?|([0-9.]+)(?::[0-9]+)?|([0-9a-fA-F:.]+)")
_PAIR = re.compile(r'\s*([A-Za-z]+)=("(?:[^"\\]|\\.)*"|[^;,"\s]*)\s*')


@dataclass(frozen=True)
class Forwarded:
    """None for what nobody said, or said in a way that makes no sense."""

    scheme: str | None
    host: str | None
    """With the port, if it is not the scheme's own."""
    prefix: str | None
    """What the proxy has taken away from the beginning of the path."""
    client: str | None


def read(header: Callable[[str], str | None], proxies: int) -> Forwarded:
    """`header` finds one by its name; `proxies` are those of the operator's that a request passes."""
    standard = header("Forwarded")
    if standard:
        said = _standard(standard, proxies)
    else:
        said = {
            "proto": _entry(header("X-Forwarded-Proto"), proxies),
            "host": _entry(header("X-Forwarded-Host"), proxies),
            "for": _entry(header("X-Forwarded-For"), proxies),
        }
    scheme = said.get("proto", "").lower()
    host = said.get("host", "")
    prefix = _entry(header("X-Forwarded-Prefix"), proxies).rstrip("/")
    client = _CLIENT.fullmatch(said.get("for", ""))
    return Forwarded(
        scheme=scheme if scheme in _SCHEMES else None,
        host=host if _HOST.fullmatch(host) else None,
        prefix=prefix if _PREFIX.fullmatch(prefix) else None,
        client=None if client is None else next(filter(None, client.groups())),
    )


def _entry(listed: str | None, proxies: int) -> str:
    """The one that the outermost of our proxies wrote."""
    return _outermost((listed or "").split(","), proxies).strip()


def _outermost(entries: list[str], proxies: int) -> str:
    return entries[max(0, len(entries) - proxies)]


def _standard(listed: str, proxies: int) -> dict[str, str]:
    """RFC 7239: an entry for each proxy, whose values may be quoted."""
    entries = re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^,"])+', listed)
    if not entries:
        return {}
    pairs = _PAIR.findall(_outermost(entries, proxies))
    return {name.lower(): re.sub(r"\\(.)", r"\1", value.strip('"')) for name, value in pairs}
