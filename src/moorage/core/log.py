"""Logging: each line says whose work it is about; as text for people, or as JSON for machines."""

from __future__ import annotations

import json
import logging
import socket
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec

from moorage.core import context
from moorage.core.context import WorkContext

FORMAT = "%(asctime)s %(levelname)s %(name)s [%(whose)s] %(message)s"
_HOSTNAME = socket.gethostname()


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class ContextFilter(logging.Filter):
    """Adds what formatters show: whose work it is, unless the line says so itself."""

    def __init__(self, host: str = "") -> None:
        super().__init__()
        self._host = host

    def filter(self, record: logging.LogRecord) -> bool:
        work: WorkContext = getattr(record, "work", None) or context.current()
        if self._host and not work.host:
            work = msgspec.structs.replace(work, host=self._host)
        record.work, record.whose = work, _whose(work)
        return True


def _whose(work: WorkContext) -> str:
    told = [work.request_ids] if work.request_id else []
    for name in ("project_id", "server", "host", "operation"):
        value = getattr(work, name)
        if value:
            told.append(f"{name.removesuffix('_id')}={value}")
    return " ".join(told) or "-"


class JsonFormatter(logging.Formatter):
    """A line of JSON, with the names that oslo.log gives to things."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "message": record.getMessage(),
            "asctime": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f"),
            "name": record.name,
            "levelname": record.levelname,
            "levelno": record.levelno,
            "pathname": record.pathname,
            "lineno": record.lineno,
            "funcname": record.funcName,
            "created": record.created,
            "thread_name": record.threadName,
            "process": record.process,
            "hostname": _HOSTNAME,
            "traceback": None,
            "error_summary": "",
            "context": _as_oslo(getattr(record, "work", context.NOBODY)),
        }
        if record.exc_info and record.exc_info[0] is not None:
            told["traceback"] = "".join(traceback.format_exception(*record.exc_info)).splitlines()
            told["error_summary"] = "".join(traceback.format_exception_only(*record.exc_info[:2])).strip()
        return json.dumps(told)


def _as_oslo(work: WorkContext) -> dict[str, str | None]:
    """`resource_uuid` is what `oslo.log` calls the thing that a line is about."""
    told = {name: value or None for name, value in msgspec.structs.asdict(work).items()}
    told["resource_uuid"] = told.pop("server")
    return told


_FORMATTERS: dict[LogFormat, Callable[[], logging.Formatter]] = {
    LogFormat.TEXT: lambda: logging.Formatter(FORMAT),
    LogFormat.JSON: JsonFormatter,
}


def set_up(level: int | str = logging.INFO, form: str = LogFormat.TEXT, host: str = "") -> None:
    """Send every log line to standard error, each with whose work it is about; `host` is this process's."""
    handler = logging.StreamHandler()
    handler.setFormatter(_FORMATTERS[LogFormat(form)]())
    handler.addFilter(ContextFilter(host))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for chatty in ("keystonemiddleware", "urllib3", "stevedore", "oslo_policy"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
