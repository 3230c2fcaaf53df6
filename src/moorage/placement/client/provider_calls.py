"""Reporting one provider with the calls of the Placement API, for services without the bulk report.

Each part is read and compared first, so that what is unchanged is not written. A part that somebody else
changed between reading and writing is read again, a few times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from moorage.placement.client.contract import (
    PlacementRefusedError,
    PlacementUnavailableError,
    ProviderInventory,
    ReportedProvider,
)
from moorage.placement.client.link import Link, decoded, expect, is_concurrent_update, refusal

ATTEMPTS = 4
CUSTOM = "CUSTOM_"
_NOT_FOUND = 404


class _Provider(msgspec.Struct):
    name: str
    parent_provider_uuid: str | None = None


class _Part(msgspec.Struct):
    """What every part of a provider is read and written with."""

    resource_provider_generation: int


class _Inventories(_Part):
    inventories: dict[str, ProviderInventory]


class _Traits(_Part):
    traits: list[str]


class _Aggregates(_Part):
    aggregates: list[str]


Part = TypeVar("Part", bound=_Part)


class ProviderCalls:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._made: set[str] = set()
        """Custom names that exist for sure."""

    def report(self, provider: ReportedProvider) -> None:
        self._be_there(provider)
        path = f"/resource_providers/{provider.uuid}"
        if provider.inventories is not None:
            self._set_inventories(path, msgspec.convert(provider.inventories, dict[str, ProviderInventory]))
        if provider.traits is not None:
            self._set_traits(path, set(provider.traits), remove=None)
        elif provider.add_traits is not None or provider.remove_traits is not None:
            self._set_traits(path, set(provider.add_traits or ()), remove=set(provider.remove_traits or ()))
        if provider.aggregates is not None:
            self._set_aggregates(path, set(provider.aggregates))

    def set_trait(self, uuid: str, trait: str, *, present: bool) -> None:
        try:
            self._set_traits(
                f"/resource_providers/{uuid}",
                {trait} if present else set(),
                remove=set() if present else {trait},
            )
        except PlacementRefusedError as error:
            if error.status != _NOT_FOUND:
                raise

    def make_classes(self, names: Iterable[str]) -> None:
        self._make("/resource_classes", names)

    def _be_there(self, provider: ReportedProvider) -> None:
        path = f"/resource_providers/{provider.uuid}"
        answer = self._link.get(path)
        parent = provider.parent_provider_uuid
        if answer.status == 404:
            body: dict[str, Any] = {"uuid": provider.uuid, "name": provider.name}
            if parent is not None:
                body["parent_provider_uuid"] = parent
            made = self._link.send("POST", "/resource_providers", body)
            if made.status in (200, 201):
                return
            answer = self._link.get(path)
            if answer.status == 404:  # else somebody else has made it since we looked, or we have unheard
                raise refusal(made)
        found = decoded(expect(answer, 200), _Provider)
        wanted = _Provider(provider.name, parent or found.parent_provider_uuid)
        if found != wanted:
            expect(self._link.send("PUT", path, wanted), 200)

    def _set_inventories(self, path: str, wanted: dict[str, ProviderInventory]) -> None:
        self.make_classes(wanted)
        self._settle(
            f"{path}/inventories",
            _Inventories,
            lambda found: found.inventories == wanted,
            lambda found: _Inventories(found.resource_provider_generation, wanted),
        )

    def _set_traits(self, path: str, wanted: set[str], *, remove: set[str] | None) -> None:
        """Without `remove`, all others go."""
        self._make("/traits", wanted)

        def after(found: _Traits) -> set[str]:
            return wanted if remove is None else set(found.traits) - remove | wanted

        self._settle(
            f"{path}/traits",
            _Traits,
            lambda found: set(found.traits) == after(found),
            lambda found: _Traits(found.resource_provider_generation, sorted(after(found))),
        )

    def _set_aggregates(self, path: str, wanted: set[str]) -> None:
        self._settle(
            f"{path}/aggregates",
            _Aggregates,
            lambda found: set(found.aggregates) == wanted,
            lambda found: _Aggregates(found.resource_provider_generation, sorted(wanted)),
        )

    def _settle(
        self, path: str, kind: type[Part], is_so: Callable[[Part], bool], change: Callable[[Part], Part]
    ) -> None:
        """Make one part of a provider so; both functions get it as we have seen it."""
        for _ in range(ATTEMPTS):
            found = decoded(expect(self._link.get(path), 200), kind)
            if is_so(found) or self._write(path, change(found)):
                return
        raise PlacementUnavailableError(f"{path} is changed by others again and again")

    def _write(self, path: str, change: _Part) -> bool:
        """False if somebody else was faster."""
        answer = self._link.send("PUT", path, change)
        if is_concurrent_update(answer):
            return False
        expect(answer, 200)
        return True

    def _make(self, path: str, names: Iterable[str]) -> None:
        """Custom resource classes and traits are made by naming them."""
        for name in sorted(name for name in names if name.startswith(CUSTOM)):
            if name not in self._made:
                expect(self._link.send("PUT", f"{path}/{name}"), 200, 201, 204)
                self._made.add(name)
