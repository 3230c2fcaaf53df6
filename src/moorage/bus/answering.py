"""What an agent says to a question, whatever brought it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from moorage.bus.contract import Answer, Question, Refusal

LOG = logging.getLogger(__name__)


def found_out(on_question: Callable[[Question], Answer], question: str) -> Answer:
    try:
        return on_question(msgspec.json.decode(question, type=Question))
    except msgspec.DecodeError as error:
        return Answer(refusal=Refusal.UNSUPPORTED, error=f"the question makes no sense: {error}")
    except Exception as error:
        LOG.exception("a question could not be answered")
        return Answer(refusal=Refusal.FAILED, error=str(error))
