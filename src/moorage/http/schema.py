"""Schema checks: a fast validator says yes or no, the slow one is asked only to word the refusal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import jsonschema_rs
import msgspec
from oslo_utils.uuidutils import is_uuid_like

from moorage.core import nul
from moorage.core.microversions import Version
from moorage.http.errors import HttpError, SchemaError

_LARGE = 64 * 1024
"""A refusal quotes what it refuses; of a body with more bytes it quotes a part, because that takes long."""
_MOST_QUOTED = 1000

_LONGEST_MATCHED = 4096
"""A text that is longer is not compared with a pattern only to word a refusal: it might take hours."""

FORMATS = jsonschema.FormatChecker()


@FORMATS.checks("uuid")
def _uuid_format(value: object) -> bool:
    return not isinstance(value, str) or is_uuid_like(value)


def _pattern(
    checker: Any, pattern: str, instance: Any, schema: dict[str, Any]
) -> Iterator[jsonschema.ValidationError]:
    """As ever, but without a search through a text that is too long anyway."""
    if not isinstance(instance, str) or len(instance) > schema.get("maxLength", len(instance)):
        return
    if len(instance) > _LONGEST_MATCHED:
        if not jsonschema_rs.validator_for({"pattern": pattern}).is_valid(instance):
            yield jsonschema.ValidationError(f"{instance[:_MOST_QUOTED]!r}… does not match {pattern!r}")
        return
    yield from _CHECKS["pattern"](checker, pattern, instance, schema)


def _unique_items(
    _checker: Any, wanted: bool, instance: Any, _schema: dict[str, Any]
) -> Iterator[jsonschema.ValidationError]:
    """In one pass, where the library compares each with each."""
    if wanted and isinstance(instance, list):
        seen = {msgspec.json.encode(item, order="sorted") for item in instance}
        if len(seen) < len(instance):
            yield jsonschema.ValidationError(f"{instance!r} has non-unique elements")


_CHECKS = jsonschema.Draft202012Validator.VALIDATORS
_Checker = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator, {"pattern": _pattern, "uniqueItems": _unique_items}
)


class Schema:
    """A JSON schema, compiled once."""

    def __init__(self, definition: dict[str, Any]) -> None:
        self.definition = definition
        self.single: frozenset[str] = frozenset(definition.get("single", ()))
        """Parameters of a query string that must not be repeated."""
        self._slow = _Checker(definition, format_checker=FORMATS)
        self._fast = jsonschema_rs.validator_for(
            definition, formats={"uuid": is_uuid_like}, validate_formats=True
        )

    def at(self, _version: Version) -> Schema:
        """The same at every version; see `VersionedSchema`."""
        return self

    def newest(self) -> dict[str, Any]:
        return self.definition

    def problem(self, instance: Any) -> jsonschema.ValidationError | None:
        """None if `instance` is valid, else what is wrong with it."""
        if self._fast.is_valid(instance):
            return None
        # If the two disagree, the slow one is the authority, because clients were written against it.
        found: jsonschema.ValidationError | None = jsonschema.exceptions.best_match(
            self._slow.iter_errors(instance)
        )
        return found

    def load(self, body: bytes) -> Any:
        """Decode a JSON body and check it; a refusal is a 400 with the reason."""
        try:
            data = msgspec.json.decode(body)
            if nul.in_json(body, data):
                raise HttpError(400, nul.REFUSAL)
            self._check(data, large=len(body) > _LARGE)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HttpError(400, f"Malformed JSON: {error}") from error
        except RecursionError as error:
            raise HttpError(400, "Malformed JSON: nested too deeply") from error
        return data

    def _check(self, data: Any, *, large: bool) -> None:
        if not large:
            problem = self.problem(data)
            if problem is not None:
                raise _refusal("JSON does not validate", problem)
        elif not self._fast.is_valid(data):
            first = next(self._slow.iter_errors(data), None)
            if first is not None:
                reason = first.message[:_MOST_QUOTED]
                raise SchemaError(f"JSON does not validate: {reason}", _field(first), None, reason)

    def check_query(self, parameters: dict[str, str]) -> None:
        problem = self.problem(parameters)
        if problem is not None:
            raise _refusal("Invalid query string parameters", problem)


def _refusal(what: str, problem: jsonschema.ValidationError) -> SchemaError:
    return SchemaError(f"{what}: {problem}", _field(problem), problem.instance, problem.message)


def _field(problem: jsonschema.ValidationError) -> str | None:
    return str(problem.absolute_path[-1]) if problem.absolute_path else None


class VersionedSchema:
    """Schemas by the version that brought each; the newest that a request knows is taken."""

    def __init__(self, definitions: dict[Version, dict[str, Any]]) -> None:
        self._schemas = [(since, Schema(definitions[since])) for since in sorted(definitions, reverse=True)]

    def at(self, version: Version) -> Schema:
        return next(schema for since, schema in self._schemas if version >= since)

    def newest(self) -> dict[str, Any]:
        return self._schemas[0][1].definition


AnySchema = Schema | VersionedSchema
