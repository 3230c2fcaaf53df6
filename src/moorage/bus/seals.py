"""Seals: who sent a message, and that nobody altered it, shown by a key that only conductors and a host have.

A seal is for one kind of message and one host, to or from it: so an agent can neither speak for another host
nor give it tasks, whatever it may do on the broker. It is beside the message, where receivers that are older
don't look.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from oslo_config import cfg

from moorage.bus import key_file
from moorage.bus.contract import Result, Task
from moorage.bus.key_file import KeyFile, Keys
from moorage.bus.refusals import UNSEALED, RefusalReason, RefusedError
from moorage.core.config import ConfigError

SEAL = "seal"
"""Where it is in the context of a message."""
_FIRST_FORM = 1
_LONGEST_WAY = 300.0
"""Seconds that a question may be old, or ahead of our clock."""
_MOST_QUESTIONS = 10_000


class Signing(StrEnum):
    OFF = "off"
    ACCEPT = "accept"
    """Seal, and refuse wrong seals, but take what has none: amid an upgrade."""
    REQUIRE = "require"


class Seal(msgspec.Struct, frozen=True):
    host: str
    """The agent's that sent it, or that it is for."""
    nonce: str
    at: float
    """By the sender's clock."""
    macs: dict[str, str] = {}
    """By the id of a key; none from who does not sign."""


class MessageOrigin(NamedTuple):
    """Where a message comes from."""

    host: str | None
    """Whose it certainly is; None if that is not known, and need not be."""
    nonce: str
    at: float


class Seals:
    """Makes and checks them."""

    def __init__(
        self,
        signing: Signing,
        keys_of: Callable[[str], Keys],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.signing = signing
        self._keys_of = keys_of
        self._clock = clock

    def make(self, kind: str, host: str, body: str, nonce: str = "") -> dict[str, Any]:
        """The context to send a message with."""
        bare = Seal(host, nonce or secrets.token_hex(16), self._clock())
        if self.signing is Signing.OFF:
            return {SEAL: msgspec.to_builtins(bare)}
        macs = {key_id: _mac(key, kind, bare, body).hex() for key_id, key in self._keys_of(host).items()}
        return {SEAL: msgspec.to_builtins(msgspec.structs.replace(bare, macs=macs))}

    def check(self, kind: str, context: Mapping[str, Any], body: str) -> MessageOrigin:
        """RefusedError if it is not believed."""
        seal = _seal(context)
        if self.signing is not Signing.OFF and seal.macs:
            self._require_true(kind, seal, body)
            return MessageOrigin(seal.host, seal.nonce, seal.at)
        if self.signing is Signing.REQUIRE:
            raise RefusedError(RefusalReason.UNSEALED, seal.host, "it has no seal")
        if self.signing is Signing.ACCEPT:
            UNSEALED.labels(kind).inc()
        return MessageOrigin(None, seal.nonce, seal.at)

    def _require_true(self, kind: str, seal: Seal, body: str) -> None:
        keys = self._keys_of(seal.host)
        known = [(keys[key_id], mac) for key_id, mac in seal.macs.items() if key_id in keys]
        if not any(hmac.compare_digest(_mac(key, kind, seal, body), _bytes(mac)) for key, mac in known):
            why = "its seal is wrong" if known else "its seal is by no key that is known here"
            raise RefusedError(RefusalReason.FORGED, seal.host, why)


def _bytes(mac: str) -> bytes:
    try:
        return bytes.fromhex(mac)
    except ValueError:
        return b""


def _seal(context: Mapping[str, Any]) -> Seal:
    """Older senders have none, others what they like."""
    try:
        return msgspec.convert(context.get(SEAL), Seal)
    except msgspec.ValidationError:
        return Seal("", "", 0.0)


def _mac(key: bytes, kind: str, seal: Seal, body: str) -> bytes:
    sealed = msgspec.json.encode([_FIRST_FORM, kind, seal.host, seal.nonce, seal.at, body])
    return hmac.digest(key, sealed, hashlib.sha256)


class Tickets:
    """Shown with a result: that this host was given the task. Only who has master keys can make one.

    As a seal, it is by each key: the result may come to a conductor that does not have the newest one yet, or
    the oldest one any more.
    """

    def __init__(self, master_keys: Callable[[], Keys]) -> None:
        self._master_keys = master_keys

    def issue(self, host: str, task: Task) -> Task:
        tickets = [f"{key_id}:{_ticket(key, host, task)}" for key_id, key in self._master_keys().items()]
        return msgspec.structs.replace(task, ticket=" ".join(tickets))

    def admits(self, host: str, result: Result) -> bool:
        shown = dict(one.split(":", 1) for one in result.ticket.split() if ":" in one)
        return any(
            hmac.compare_digest(_ticket(key, host, result).encode(), shown[key_id].encode())
            for key_id, key in self._master_keys().items()
            if key_id in shown
        )


def _ticket(key: bytes, host: str, of: Task | Result) -> str:
    """A restored database gives the numbers of operations once more: so the era is in it, and the server."""
    given = ["ticket", host, of.era, of.operation_id, of.attempt, of.server_uuid]
    return hmac.digest(key, msgspec.json.encode(given), hashlib.sha256).hex()


class SeenQuestions:
    """Questions come once: one that is old, or came before, was recorded by somebody."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, float] = OrderedDict()

    def require_new(self, origin: MessageOrigin) -> None:
        now = self._clock()
        with self._lock:
            while self._seen and (
                len(self._seen) >= _MOST_QUESTIONS or next(iter(self._seen.values())) < now - 2 * _LONGEST_WAY
            ):
                self._seen.popitem(last=False)
            if abs(now - origin.at) > _LONGEST_WAY:
                sentence = f"it is {now - origin.at:.0f} s old, by our clock"
                raise RefusedError(RefusalReason.REPLAYED, origin.host or "", sentence)
            if origin.nonce in self._seen:
                raise RefusedError(RefusalReason.REPLAYED, origin.host or "", "it was here before")
            self._seen[origin.nonce] = now


class MasterSide:
    """What conductors, APIs and proxies have: they speak to all hosts."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        signing = Signing(conf.bus.signing)
        self._file = _key_file(conf.bus.keys_file, "keys_file", signing)
        self.seals = Seals(signing, lambda host: key_file.host_keys(self._masters(), host))
        self.tickets = Tickets(self._masters)

    def _masters(self) -> Keys:
        return self._file.keys() if self._file is not None else {}


class HostSide:
    """What the agent of one host has."""

    def __init__(self, conf: cfg.ConfigOpts, host: str) -> None:
        signing = Signing(conf.bus.signing)
        self._host = host
        self._file = _key_file(conf.bus.host_keys_file, "host_keys_file", signing)
        self.seals = Seals(signing, self._keys_of)
        self.questions = SeenQuestions()

    def _keys_of(self, host: str) -> Keys:
        return self._file.keys() if self._file is not None and host == self._host else {}


def _key_file(path: str | None, option: str, signing: Signing) -> KeyFile | None:
    if signing is Signing.OFF:
        return None
    if not path:
        raise ConfigError(f"[bus] signing = {signing} needs [bus] {option}")
    return KeyFile(Path(path))
