"""What the reference says of its own Compute API: schemas of what it is asked, and answers."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator, FormatChecker
from oslo_utils import timeutils

from moorage.compute_api.microversions import Microversion
from moorage.core.microversions import Version
from tests.lab.nova.pristine import NOVA

Json = dict[str, Any]
_ASK = """
import functools, inspect, json
from nova.api.openstack.compute import routes

KINDS = {"query": "request_query_schemas", "answer": "response_body_schemas"}

def classes(controller):
    while isinstance(controller, functools.partial):
        for given in controller.args:
            for one in given if isinstance(given, (list, tuple)) else [given]:
                if inspect.isclass(one):
                    yield one
        controller = controller.func

def version(bound):
    return None if bound.is_null() else [bound.ver_major, bound.ver_minor]

def told(function):
    names = {kind: name for kind, name in KINDS.items() if hasattr(function, name)}
    return {
        kind: [[version(low), version(high), one] for one, low, high in getattr(function, name)._schemas]
        for kind, name in names.items()
    }

found = {}
for path, methods in routes.ROUTE_LIST:
    if isinstance(methods, dict) and "GET" in methods:
        controller, action = methods["GET"]
        functions = [getattr(one, action) for one in classes(controller) if hasattr(one, action)]
        found[path] = told(functions[0]) if functions else {}
print(json.dumps(found))
"""
_FORMATS = FormatChecker(["uuid", "ipv4", "ipv6"])


@_FORMATS.checks("date-time", raises=ValueError)
def _is_moment(text: object) -> bool:
    """The reference takes more spellings than the standard."""
    return not isinstance(text, str) or bool(timeutils.parse_isotime(text))


@_FORMATS.checks("regex", raises=re.error)
def _is_pattern(text: object) -> bool:
    """There, nothing is none."""
    return isinstance(text, str) and text != "" and bool(re.compile(text))


class Range(NamedTuple):
    """The versions that a schema holds for."""

    low: Version
    high: Version
    schema: Json

    def faults(self, document: Any) -> list[str]:
        validator = Draft202012Validator(self.schema, format_checker=_FORMATS)
        return [
            f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
            for error in validator.iter_errors(document)
        ]


@cache
def _told() -> dict[str, dict[str, list[tuple[list[int] | None, list[int] | None, Json]]]]:
    asked = subprocess.run([NOVA.bin() / "python", "-c", _ASK], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(asked.stdout.splitlines()[-1])
    return {shape(path): kinds for path, kinds in found.items()}


def shape(path: str) -> str:
    """What is in braces is called differently everywhere."""
    return re.sub(r"\{\w+\}", "{}", path)


def ranges(path: str, kind: str) -> list[Range]:
    """Of what a GET of this path may ask for (`query`), or is answered with (`answer`)."""
    listed = _told().get(shape(path), {}).get(kind, [])
    return [
        Range(
            Microversion.lowest() if low is None else (low[0], low[1]),
            Microversion.highest() if high is None else (high[0], high[1]),
            schema,
        )
        for low, high, schema in listed
    ]
