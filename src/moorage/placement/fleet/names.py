"""The names of resource classes and traits, and the ids that SQL and the fleet know them by."""

from __future__ import annotations

from collections.abc import Mapping

SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"


class UnknownNameError(LookupError):
    """A request used a name that does not exist; `name` is what it said."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class UnknownClassError(UnknownNameError):
    """No resource class has this name."""


class UnknownTraitError(UnknownNameError):
    """No trait has this name."""


class Names:
    """Ids and names of resource classes and traits, both ways.

    `renames` counts the changes that make an already encoded name stale, so that caches of encoded
    answers know when to start afresh; new names do not count.
    """

    def __init__(self) -> None:
        self._class_names: dict[int, str] = {}
        self._class_ids: dict[str, int] = {}
        self._trait_names: dict[int, str] = {}
        self._trait_ids: dict[str, int] = {}
        self.renames = 0

    def set_classes(self, names: Mapping[int, str]) -> None:
        """Take these as all the resource classes there are."""
        self._note_renames(self._class_names, names)
        self._class_names = dict(names)
        self._class_ids = {name: class_id for class_id, name in names.items()}

    def set_traits(self, names: Mapping[int, str]) -> None:
        """Take these as all the traits there are."""
        self._note_renames(self._trait_names, names)
        self._trait_names = dict(names)
        self._trait_ids = {name: trait_id for trait_id, name in names.items()}

    def class_id(self, name: str) -> int:
        try:
            return self._class_ids[name]
        except KeyError:
            raise UnknownClassError(name) from None

    def class_name(self, class_id: int) -> str:
        return self._class_names[class_id]

    def trait_id(self, name: str) -> int:
        try:
            return self._trait_ids[name]
        except KeyError:
            raise UnknownTraitError(name) from None

    def trait_name(self, trait_id: int) -> str:
        return self._trait_names[trait_id]

    @property
    def sharing_trait_id(self) -> int | None:
        """The trait that lets a provider share its inventory; None until traits are known."""
        return self._trait_ids.get(SHARING_TRAIT)

    def _note_renames(self, old: Mapping[int, str], new: Mapping[int, str]) -> None:
        if any(new.get(number) != name for number, name in old.items()):
            self.renames += 1
