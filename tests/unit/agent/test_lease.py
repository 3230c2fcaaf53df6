"""How long an agent relies on what it was told to own."""

from __future__ import annotations

import pytest

from moorage.agent.lease import OwnershipLease


class Watch:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.until = float("inf")
        self.lease = OwnershipLease(self._trust, lambda: self.now)

    def _trust(self, until: float) -> None:
        self.until = until

    @property
    def trusts(self) -> bool:
        return self.now < self.until

    def beat(self, *, taken: bool = True) -> int:
        """The number of the question that goes along; 0 for none."""
        question = self.lease.ask() if self.lease.about_to_beat() else 0
        if taken:
            self.lease.has_beaten()
        return question


@pytest.fixture
def watch() -> Watch:
    """An agent that was told all at its start: it counts as alive for a minute."""
    made = Watch()
    made.lease.about_to_beat()
    question = made.lease.ask()
    made.lease.has_beaten()
    made.lease.learn(60.0, question)
    return made


def test_without_a_lease_there_is_no_end_to_it() -> None:
    watch = Watch()
    watch.beat()
    watch.lease.learn(0.0, 0)
    watch.now += 10_000
    assert watch.beat() == 0
    assert watch.trusts


def test_each_sign_of_life_that_is_taken_renews_it(watch: Watch) -> None:
    for _ in range(20):
        watch.now += 10
        assert watch.beat() == 0
        assert watch.trusts
    watch.now += 10
    watch.beat(taken=False)
    watch.now += 10
    assert watch.trusts
    watch.now += 10
    assert not watch.trusts, "half of the lease is left for what is on its way"


def test_after_a_stop_only_an_answer_to_what_was_asked_since_counts(watch: Watch) -> None:
    watch.now += 500
    question = watch.beat()
    assert question
    assert not watch.trusts, "that somebody hears us does not mean that our nodes are ours"
    assert not watch.lease.is_news(question - 1)
    watch.lease.learn(60.0, question - 1)
    assert not watch.trusts
    watch.lease.learn(60.0, 0)
    assert not watch.trusts
    assert watch.lease.is_news(question)
    watch.lease.learn(60.0, question)
    assert watch.trusts


def test_an_answer_that_takes_long_counts_if_we_were_heard_meanwhile(watch: Watch) -> None:
    watch.now += 500
    first = watch.beat()
    for _ in range(2):
        watch.now += 20
        assert watch.beat(), "it is asked again and again"
    watch.lease.learn(60.0, first)
    assert not watch.trusts, "what was true when we asked is too long ago"
    watch.now += 1
    again = watch.beat()
    watch.lease.learn(60.0, again)
    assert watch.trusts


def test_a_stop_between_two_looks_at_the_clock_is_seen(watch: Watch) -> None:
    """Stopped in the middle of an order: it is not the heartbeat that finds it out."""
    watch.now += 31
    assert not watch.trusts
