"""Seals and tickets: what they show, and that nothing else passes for them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from moorage.bus import key_file
from moorage.bus.contract import Result, Task
from moorage.bus.refusals import UNSEALED, RefusalReason, RefusedError
from moorage.bus.seals import SEAL, MessageOrigin, Seals, SeenQuestions, Signing, Tickets

MASTERS = {"new": b"n" * 32, "old": b"o" * 32}


def side(signing: Signing = Signing.REQUIRE, *ids: str) -> Seals:
    """Somebody with master keys."""
    keys = {key_id: MASTERS[key_id] for key_id in ids or MASTERS}
    return Seals(signing, lambda host: key_file.host_keys(keys, host), clock=lambda: 1000.5)


def agent(host: str, signing: Signing = Signing.REQUIRE, *ids: str) -> Seals:
    keys = {key_id: MASTERS[key_id] for key_id in ids or MASTERS}
    own = key_file.host_keys(keys, host)
    return Seals(signing, lambda named: own if named == host else {}, clock=lambda: 1000.5)


def refusal(check: Callable[[], object]) -> RefusalReason:
    with pytest.raises(RefusedError) as refused:
        check()
    return refused.value.reason


def test_who_has_the_hosts_key_is_believed_both_ways() -> None:
    to, back = side(), agent("host-1")
    assert back.check("tasks", to.make("tasks", "host-1", "body"), "body").host == "host-1"
    assert to.check("results", back.make("results", "host-1", "body"), "body").host == "host-1"


def test_nothing_of_a_message_can_be_altered() -> None:
    context = side().make("tasks", "host-1", "body", nonce="n")
    for name, value in (("host", "host-2"), ("nonce", "m"), ("at", 1000.25)):
        altered = {SEAL: {**context[SEAL], name: value}}
        assert refusal(lambda altered=altered: side().check("tasks", altered, "body")) == "forged"  # type: ignore[misc]
    assert refusal(lambda: side().check("tasks", context, "bodY")) == "forged"
    assert refusal(lambda: side().check("question", context, "body")) == "forged"


def test_an_agent_can_neither_speak_for_another_host_nor_to_it() -> None:
    one, two = agent("host-1"), agent("host-2")
    forged = Seals(Signing.REQUIRE, lambda _host: key_file.host_keys(MASTERS, "host-1"))
    assert (
        refusal(lambda: side().check("heartbeat", forged.make("heartbeat", "host-2", "b"), "b")) == "forged"
    )
    assert refusal(lambda: two.check("tasks", forged.make("tasks", "host-2", "b"), "b")) == "forged"
    assert refusal(lambda: two.check("tasks", one.make("tasks", "host-1", "b"), "b")) == "forged"


@pytest.mark.parametrize(
    "context",
    [
        {},
        {SEAL: None},
        {SEAL: 5},
        {SEAL: {"host": 1}},
        {SEAL: {"host": "h", "nonce": "", "at": 0, "macs": {}}},
    ],
)
def test_what_has_no_seal_is_taken_amid_an_upgrade_only(context: dict[str, object]) -> None:
    assert refusal(lambda: side().check("tasks", context, "body")) == "unsealed"
    before = UNSEALED.labels("tasks")._value.get()
    assert side(Signing.ACCEPT).check("tasks", context, "body").host is None
    assert UNSEALED.labels("tasks")._value.get() == before + 1
    assert side(Signing.OFF).check("tasks", context, "body").host is None


def test_a_wrong_seal_is_refused_even_amid_an_upgrade() -> None:
    context = side().make("tasks", "host-1", "body")
    assert refusal(lambda: side(Signing.ACCEPT).check("tasks", context, "other")) == "forged"
    odd = {SEAL: {**context[SEAL], "macs": {"new": "ü", "old": "xyz"}}}
    assert refusal(lambda: side(Signing.ACCEPT).check("tasks", odd, "body")) == "forged"


def test_who_does_not_sign_proves_nothing_but_is_understood() -> None:
    assert side(Signing.ACCEPT).check(
        "tasks", side(Signing.OFF).make("tasks", "h", "b", "n"), "b"
    ) == MessageOrigin(None, "n", 1000.5)
    assert side(Signing.OFF).check("tasks", side().make("tasks", "h", "b", "n"), "b").nonce == "n"


def test_keys_are_rotated_one_side_after_the_other() -> None:
    """Each side has the old one, both, or the new one: neighbours in this order understand each other."""
    phases = [("old",), ("new", "old"), ("new",)]
    for first, second in ((0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2)):
        to, back = side(Signing.REQUIRE, *phases[first]), agent("h", Signing.REQUIRE, *phases[second])
        assert back.check("tasks", to.make("tasks", "h", "b"), "b").host == "h"
        assert to.check("results", back.make("results", "h", "b"), "b").host == "h"
    gone = side(Signing.REQUIRE, "old").make("tasks", "h", "b")
    assert refusal(lambda: agent("h", Signing.REQUIRE, "new").check("tasks", gone, "b")) == "forged"


def test_only_who_was_given_a_task_has_its_ticket() -> None:
    tickets = Tickets(lambda: MASTERS)
    given = tickets.issue("host-2", Task(7, "server", "spawn", 2, "node", era=3))
    result = Result(7, "server", 2, True, ticket=given.ticket, era=3)
    assert tickets.admits("host-2", result)
    assert not tickets.admits("host-1", result)
    for change in (
        {"operation_id": 8},
        {"attempt": 3},
        {"server_uuid": "other"},
        {"ticket": ""},
        {"era": 0},
        {"ticket": "new:"},
        {"ticket": "new: : :x x"},
    ):
        assert not tickets.admits("host-2", msgspec.structs.replace(result, **change))
    assert not Tickets(lambda: {"newer": b"x" * 32}).admits("host-2", result)


def test_conductors_admit_what_another_one_gave_out_amid_a_rotation() -> None:
    """Each has the old key, both, or the new one; neighbours in this order understand each other."""
    phases = [("old",), ("new", "old"), ("new",)]
    conductors = [Tickets(lambda ids=ids: {one: MASTERS[one] for one in ids}) for ids in phases]  # type: ignore[misc]
    for giver, taker, admitted in ((0, 1, True), (1, 0, True), (1, 2, True), (2, 1, True), (0, 2, False)):
        given = conductors[giver].issue("host-1", Task(7, "server", "spawn", 2, "node"))
        result = Result(7, "server", 2, True, ticket=given.ticket)
        assert conductors[taker].admits("host-1", result) is admitted


def test_a_question_comes_once_and_is_not_old() -> None:
    now = 1000.0
    seen = SeenQuestions(lambda: now)
    seen.require_new(MessageOrigin("h", "a", 1000.0))
    assert refusal(lambda: seen.require_new(MessageOrigin("h", "a", 1000.0))) == "replayed"
    assert refusal(lambda: seen.require_new(MessageOrigin("h", "b", 600.0))) == "replayed"
    assert refusal(lambda: seen.require_new(MessageOrigin("h", "c", 1400.0))) == "replayed"
    now = 1299.0
    assert refusal(lambda: seen.require_new(MessageOrigin("h", "a", 1000.0))) == "replayed"
    seen.require_new(MessageOrigin("h", "d", 1299.0))
