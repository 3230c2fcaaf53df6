"""Messages as agents and conductors of other releases read them."""

from __future__ import annotations

import msgspec

from moorage.bus.contract import Heartbeat, HeldMachine, ObservedServer, OwnershipDigest


def test_fields_keep_the_names_that_older_releases_know() -> None:
    heartbeat = Heartbeat(
        host="h",
        version=1,
        observed={"s": ObservedServer(power=1)},
        digest=OwnershipDigest(nodes=2, epochs=3),
        held_machines=[HeldMachine("s", "n")],
    )
    sent = msgspec.to_builtins(heartbeat)
    assert {name: sent[name] for name in ("sightings", "tally", "doubts")} == {
        "sightings": {"s": {"power": 1, "operation_id": 0, "attempt": 0}},
        "tally": {"nodes": 2, "epochs": 3},
        "doubts": [{"server_uuid": "s", "node_uuid": "n"}],
    }
    assert msgspec.convert(sent, Heartbeat) == heartbeat
