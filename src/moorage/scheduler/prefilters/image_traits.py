"""Traits that an image requires of the node, as `trait:NAME` = `required` in its properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.scheduler.errors import BadImagePropertyError
from moorage.scheduler.request import Request

_PREFIX = "trait:"


@dataclass(frozen=True, slots=True)
class ImageTraits:
    properties: Mapping[str, str]

    def narrow(self, request: Request) -> Request:
        traits = frozenset(self._required())
        return request.narrowed(lambda group: group.requiring(traits)) if traits else request

    def _required(self) -> list[str]:
        names = []
        for key, value in self.properties.items():
            if key.startswith(_PREFIX):
                if value != "required":
                    raise BadImagePropertyError(key, f"must be 'required', not '{value}'")
                names.append(key.removeprefix(_PREFIX))
        return names
