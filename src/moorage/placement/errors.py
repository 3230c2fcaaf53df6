"""What can be wrong with a request to Placement, as typed values; the API gives them their status."""

from __future__ import annotations

from enum import StrEnum


class PlacementError(Exception):
    """Told to the client as it stands."""


class NotFoundError(PlacementError):
    """Something that the request names does not exist."""


class ProviderNotFound(NotFoundError):
    def __init__(self, uuid: str) -> None:
        super().__init__(f"No resource provider with uuid {uuid} found")


class UnknownProvider(NotFoundError):
    """A provider that a body names, not the path."""

    def __init__(self, uuid: str) -> None:
        super().__init__(f"Allocation for resource provider '{uuid}' that does not exist.")


class ClassNotFound(NotFoundError):
    def __init__(self, name: str) -> None:
        super().__init__(f"No such resource class {name}.")


class TraitNotFound(NotFoundError):
    def __init__(self, names: str) -> None:
        super().__init__(f"No such trait(s): {names}.")


class InventoryNotFound(NotFoundError):
    def __init__(self, class_name: str) -> None:
        super().__init__(f"No inventory of class {class_name} found.")


class ConflictError(PlacementError):
    """The request is fine, the state is not."""


class ConcurrentUpdate(ConflictError):
    """A generation that the caller gave is not the current one."""


class ProviderGenerationConflict(ConcurrentUpdate):
    def __init__(self) -> None:
        super().__init__("resource provider generation conflict")


class ConsumerGenerationConflict(ConcurrentUpdate):
    def __init__(self, expected: int | None, given: int | None) -> None:
        wanted = "null" if expected is None else str(expected)
        super().__init__(f"consumer generation conflict - expected {wanted} but got {given}")


class InventoryExists(ConcurrentUpdate):
    def __init__(self, class_name: str) -> None:
        super().__init__(f"An inventory of class {class_name} exists already.")


class InventoryInUse(ConflictError):
    def __init__(self, class_names: str, provider_uuid: str) -> None:
        super().__init__(f"Inventory for '{class_names}' on resource provider '{provider_uuid}' in use.")


class InvalidInventory(ConflictError):
    """An allocation that its inventory can't take."""

    def __init__(self, class_name: str, provider_uuid: str) -> None:
        super().__init__(f"Inventory for '{class_name}' on resource provider '{provider_uuid}' invalid.")


class CapacityExceeded(ConflictError):
    def __init__(self, class_name: str, provider_uuid: str) -> None:
        super().__init__(
            f"Unable to create allocation for '{class_name}' on resource provider '{provider_uuid}'. "
            "The requested amount would exceed the capacity."
        )


class UnitsViolated(ConflictError):
    def __init__(self, class_name: str, provider_uuid: str) -> None:
        super().__init__(
            f"Unable to create allocation for '{class_name}' on resource provider '{provider_uuid}'. "
            "The requested amount would violate inventory constraints."
        )


class ProviderExists(ConflictError):
    """Another provider has this name or UUID."""


class ProviderInUse(ConflictError):
    def __init__(self) -> None:
        super().__init__("Resource provider has allocations.")


class ProviderHasChildren(ConflictError):
    """A parent can't be deleted before its children."""


class ParentRefused(PlacementError):
    """A parent that a provider can't have."""


class NameExists(ConflictError):
    """A resource class or trait of this name exists."""


class NameInUse(ConflictError):
    """A resource class or trait that some provider has can't be deleted."""


class StandardName(PlacementError):
    """Standard resource classes and traits can't be changed."""


NOT_OWN = "moorage.not_own"
"""The code of such a refusal, by which our client tells it from credentials that are of no use at all."""


class TreeRefusal(StrEnum):
    NOT_OWN = "not_own"
    """The tree belongs to another user."""
    UNOWNED = "unowned"
    """The tree belongs to nobody, and agents may not take what they find."""
    OTHER_CONSUMER = "other_consumer"
    """A reshape is about somebody who holds nothing of the agent's own, or would change whose it is."""
    SHARED_NAME = "shared_name"
    """A name that others' providers have, too, shall become another."""


class TreeRefused(PlacementError):
    """An agent may write to trees of its own only, and this is none."""

    def __init__(self, reason: TreeRefusal, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason
