"""Clients that claim and release as fast as they can, and remember what they were promised."""

from __future__ import annotations

import random
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.support.wire import ConnectionLostError, Reply, Wire


@dataclass
class Ledger:
    """What one or more claimants know. Written by their threads, read when these have ended."""

    promised: dict[str, dict[str, int]] = field(default_factory=dict)
    """Consumer to amounts by provider: the service said yes, so it must be there."""
    doubtful: set[str] = field(default_factory=set)
    """Consumers whose last answer never came: there or not, but whole."""
    refused: list[Reply] = field(default_factory=list)
    surprises: list[Reply] = field(default_factory=list)
    """Answers that no claim should ever get."""

    def absorb(self, other: Ledger) -> None:
        self.promised.update(other.promised)
        self.doubtful |= other.doubtful
        self.refused += other.refused
        self.surprises += other.surprises


class Claimants:
    """Threads on one service; `stop()` collects what they know."""

    def __init__(
        self,
        port: int,
        providers: list[str],
        clients: int,
        seed: int,
        release: float = 0.2,
        database_may_be_away: bool = False,
    ) -> None:
        self.port = port
        self.providers = providers
        self.release = release
        self.database_may_be_away = database_may_be_away
        self._stopping = threading.Event()
        self._ledgers = [Ledger() for _ in range(clients)]
        self._threads = [
            threading.Thread(target=self._work, args=(ledger, random.Random(f"{seed}/{number}")), daemon=True)
            for number, ledger in enumerate(self._ledgers)
        ]
        for thread in self._threads:
            thread.start()

    def promised(self) -> int:
        return sum(len(ledger.promised) for ledger in self._ledgers)

    def refused(self) -> int:
        return sum(len(ledger.refused) for ledger in self._ledgers)

    def stop(self) -> Ledger:
        self._stopping.set()
        total = Ledger()
        for thread, ledger in zip(self._threads, self._ledgers, strict=True):
            thread.join(60)
            assert not thread.is_alive(), "a claimant hangs"
            if self.database_may_be_away:
                ledger.surprises = [reply for reply in ledger.surprises if reply.status != 503]
            total.absorb(ledger)
        return total

    def _work(self, ledger: Ledger, dice: random.Random) -> None:
        with Wire(self.port, timeout=30, once=True) as wire:
            while not self._stopping.is_set():
                if ledger.promised and dice.random() < self.release:
                    _release(wire, ledger, dice.choice(list(ledger.promised)))
                else:
                    self._claim(wire, ledger, dice)

    def _claim(self, wire: Wire, ledger: Ledger, dice: random.Random) -> None:
        chosen = dice.sample(self.providers, min(len(self.providers), dice.choice((1, 1, 2, 3))))
        amounts = {provider: dice.randint(1, 3) for provider in chosen}
        consumer = str(uuid.UUID(int=dice.getrandbits(128), version=4))
        try:
            reply = wire.put(f"/allocations/{consumer}", claim_body(amounts))
        except (OSError, ConnectionLostError):
            _lost(ledger, consumer)
            return
        if reply.status == 204:
            ledger.promised[consumer] = amounts
        elif reply.status == 409:
            ledger.refused.append(reply)
        else:
            _surprised(ledger, consumer, reply)


def claim_body(amounts: dict[str, int], resource_class: str = "VCPU") -> dict[str, Any]:
    return {
        "allocations": {
            provider: {"resources": {resource_class: amount}} for provider, amount in amounts.items()
        },
        "project_id": "chaos",
        "user_id": "chaos",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }


def _release(wire: Wire, ledger: Ledger, consumer: str) -> None:
    del ledger.promised[consumer]
    try:
        reply = wire.delete(f"/allocations/{consumer}")
    except (OSError, ConnectionLostError):
        _lost(ledger, consumer)
        return
    if reply.status != 204:
        _surprised(ledger, consumer, reply)


def _surprised(ledger: Ledger, consumer: str, reply: Reply) -> None:
    ledger.surprises.append(reply)
    _lost(ledger, consumer)


def _lost(ledger: Ledger, consumer: str) -> None:
    """The service is down or going down: do not spin while it is."""
    ledger.doubtful.add(consumer)
    time.sleep(0.05)
