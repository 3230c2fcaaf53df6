"""Asking agents over RabbitMQ, for those who seldom do."""

from __future__ import annotations

import threading

from oslo_config import cfg

from moorage.bus.contract import Answer, AskingSide, NoAnswerError, Question


class NobodyToAsk:
    """Where no agents are."""

    def ask(self, host: str, question: Question, timeout: float) -> Answer:
        raise NoAnswerError("no agents can be asked from here")

    def close(self) -> None:
        pass


class AskingWhenNeeded:
    """Connects when the first question is asked: who asks none does without a broker."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._side: AskingSide | None = None

    def ask(self, host: str, question: Question, timeout: float) -> Answer:
        return self._connected().ask(host, question, timeout)

    def close(self) -> None:
        with self._lock:
            side, self._side = self._side, None
        if side is not None:
            side.close()

    def _connected(self) -> AskingSide:
        from moorage.bus.messaging_questions import MessagingAskingSide  # a second to import

        with self._lock:
            if self._side is None:
                self._side = MessagingAskingSide(self._conf)
            return self._side
