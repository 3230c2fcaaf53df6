"""The action `os-getConsoleOutput`: what a server has printed on its console."""

from __future__ import annotations

import re
from typing import Any

from moorage.bus.contract import QuestionKind
from moorage.compute.errors import NotFoundError
from moorage.compute_api.consoles.asking import ask
from moorage.compute_api.servers.servers import find
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.reply import Reply

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f]")
"""Letters that the API has always left out; a tab and the end of a line are none of them."""


def show(service: ComputeService, call: Call, argument: Any) -> Reply:
    with service.database.read() as connection:
        server = find(connection, call)
    answer = ask(service, call, server, QuestionKind.CONSOLE_LOG, {"lines": _lines(argument.get("length"))})
    if answer.refusal is not None:
        raise NotFoundError("Guest does not have a console available.")
    return Reply(body={"output": _CONTROL.sub("", str(answer.facts["output"]))})


def _lines(length: Any) -> int | None:
    """None for all of them, which -1 means, too."""
    lines = None if length is None else int(length)
    return None if lines is None or lines < 0 else lines
