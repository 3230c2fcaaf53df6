"""Questions over a real RabbitMQ: answered at once, or a refusal in a bounded time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from moorage.bus import older_questions
from moorage.bus.asking import AskingWhenNeeded
from moorage.bus.contract import Answer, NoAnswerError, Question, Refusal
from moorage.bus.messaging import MessagingAgentSide
from moorage.bus.options import OPTIONS
from moorage.bus.oslo import oslo_messaging, set_defaults
from moorage.bus.queues import QueueNames
from moorage.core import config
from tests.support.processes import wait_until

QUESTION = Question("server-1", "node-1", "console_log", {"lines": 3, "of": ["ü", None]})


@pytest.fixture
def asking(conf: cfg.ConfigOpts) -> Iterator[AskingWhenNeeded]:
    side = AskingWhenNeeded(conf)
    yield side
    side.close()


@pytest.fixture
def agent(conf: cfg.ConfigOpts) -> Iterator[MessagingAgentSide]:
    side = MessagingAgentSide(conf)
    yield side
    side.close()


def answered(side: AskingWhenNeeded, host: str, timeout: float = 5.0) -> Answer | None:
    try:
        return side.ask(host, QUESTION, timeout)
    except NoAnswerError:
        return None


def test_a_question_reaches_its_host_and_the_answer_comes_back(
    asking: AskingWhenNeeded, agent: MessagingAgentSide, conf: cfg.ConfigOpts
) -> None:
    other = MessagingAgentSide(conf)
    heard: list[Question] = []

    def reply(question: Question) -> Answer:
        heard.append(question)
        return Answer({"output": "ü\n"})

    agent.answer("a", reply)
    other.answer("b", lambda _question: Answer(refusal=Refusal.BUSY, error="later"))
    wait_until(lambda: answered(asking, "a") is not None, "the agent of a", 20)
    wait_until(lambda: answered(asking, "b") is not None, "the agent of b", 20)
    assert asking.ask("a", QUESTION, 5) == Answer({"output": "ü\n"})
    assert asking.ask("b", QUESTION, 5) == Answer(refusal=Refusal.BUSY, error="later")
    assert set(map(repr, heard)) == {repr(QUESTION)}
    other.close()


def test_an_agent_that_is_too_old_for_questions_shows_at_once(asking: AskingWhenNeeded) -> None:
    answered(asking, "nobody")  # connects
    began = time.monotonic()
    with pytest.raises(NoAnswerError, match="takes questions"):
        asking.ask("nobody", QUESTION, 30)
    assert time.monotonic() - began < 10


def test_a_slow_answer_is_not_waited_for_and_nobody_waits_behind_it(
    asking: AskingWhenNeeded, agent: MessagingAgentSide
) -> None:
    gate = threading.Event()

    def slow(question: Question) -> Answer:
        if question.server_uuid == "slow":
            gate.wait(20)
        return Answer({"of": question.server_uuid})

    agent.answer("a", slow)
    wait_until(lambda: answered(asking, "a") is not None, "the agent", 20)
    began = time.monotonic()
    with pytest.raises(NoAnswerError, match="within 1 s"):
        asking.ask("a", Question("slow", "n", "console_log"), 1)
    assert time.monotonic() - began < 5
    assert asking.ask("a", QUESTION, 5).facts == {"of": "server-1"}
    gate.set()


def test_without_a_broker_nobody_waits_for_long(tmp_path: Path) -> None:
    path = tmp_path / "moorage.conf"
    path.write_text("[DEFAULT]\ntransport_url = rabbit://guest:guest@127.0.0.1:1/\n")
    side = AskingWhenNeeded(config.read([str(path)], [OPTIONS]))
    began = time.monotonic()
    with pytest.raises(NoAnswerError):
        side.ask("a", QUESTION, 5)
    assert time.monotonic() - began < 20
    side.close()


def test_an_older_agent_is_asked_as_it_knows_and_an_older_asker_is_answered(
    asking: AskingWhenNeeded, agent: MessagingAgentSide, conf: cfg.ConfigOpts
) -> None:
    """Amid an upgrade, each side may be the newer one."""
    set_defaults(conf)
    older = oslo_messaging.get_rpc_transport(conf, url=conf.transport_url)
    names = QueueNames(conf.bus.exchange)
    listener = older_questions.listen(older, names, "older", lambda _question: Answer({"by": "older"}))
    wait_until(lambda: answered(asking, "older") == Answer({"by": "older"}), "the older agent", 20)
    agent.answer("newer", lambda _question: Answer({"by": "newer"}))
    calls = older_questions.OlderCalls(conf)

    def called() -> bool:
        try:
            return calls.ask("newer", QUESTION, 5) == Answer({"by": "newer"})
        except oslo_messaging.MessageUndeliverable:
            return False

    wait_until(called, "the newer agent", 20)
    calls.close()
    listener.close()
    older.cleanup()
