"""The JSON patches of the Image API: steps that change one attribute each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from moorage.http.errors import HttpError
from moorage.images.api import schemas
from moorage.images.record import ImageRecord

_LOCATIONS = "locations"


class Location(msgspec.Struct, frozen=True):
    """Where the data of an image is, and what it has to be."""

    url: str
    checksum: str | None = None
    hash_algorithm: str | None = None
    hash_value: str | None = None


@dataclass
class PatchedImage:
    record: ImageRecord
    given: dict[str, Any]
    """What callers say of it: attributes and properties."""
    location: Location | None = field(default=None)

    def apply(self, step: Mapping[str, Any]) -> None:
        op, name, rest = step["op"], *_split(step["path"])
        if op != "remove" and "value" not in step:
            raise HttpError(400, f'Operation "{op}" requires a member named "value".')
        if name in schemas.READ_ONLY or name == "id":
            raise HttpError(403, f"Attribute '{name}' is read-only.")
        if name == _LOCATIONS:
            self._locate(op, rest, step.get("value"))
        elif rest:
            raise HttpError(400, f"Invalid JSON pointer for this resource: '{step['path']}'")
        elif op == "remove":
            self._remove(name)
        elif op == "replace" and name not in self.given:
            raise HttpError(409, f"Property {name} does not exist.")
        else:
            self.given[name] = step["value"]

    def _remove(self, name: str) -> None:
        if name in schemas.GIVEN:
            raise HttpError(403, f"Attribute '{name}' can't be removed.")
        if self.given.pop(name, None) is None:
            raise HttpError(409, f"Property {name} does not exist.")

    def _locate(self, op: str, rest: str, value: Any) -> None:
        if op != "add" or rest not in ("-", "0"):
            raise HttpError(403, "A location can be added to a queued image, and nothing else.")
        problem = schemas.LOCATION.problem(value)
        if problem is not None:
            raise HttpError(400, f"Invalid location: {problem.message}")
        data = value.get("validation_data", {})
        self.location = Location(
            value["url"], data.get("checksum"), data.get("os_hash_algo"), data.get("os_hash_value")
        )


def _split(path: str) -> tuple[str, str]:
    """The attribute that a JSON pointer names, and what comes after it."""
    name, _, rest = path[1:].partition("/")
    if not name:
        raise HttpError(400, f"Invalid JSON pointer for this resource: '{path}'")
    return name.replace("~1", "/").replace("~0", "~"), rest
