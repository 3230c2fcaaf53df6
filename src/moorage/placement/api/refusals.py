"""From what went wrong in the domain to the status, sentence and code that the API gives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from moorage.http.errors import GuidelineStyle, HttpError
from moorage.placement.errors import (
    NOT_OWN,
    ConcurrentUpdate,
    ConflictError,
    InventoryInUse,
    PlacementError,
    TreeRefused,
)
from moorage.placement.microversions import Microversion
from moorage.placement.reshape import ReshapedProviderNotFound

STYLE = GuidelineStyle(undefined_code="placement.undefined_code", codes_since=Microversion.ERROR_CODES)

CONCURRENT_UPDATE = "placement.concurrent_update"
INVENTORY_IN_USE = "placement.inventory.inuse"
DUPLICATE_NAME = "placement.duplicate_name"
PROVIDER_IN_USE = "placement.resource_provider.inuse"
CANNOT_DELETE_PARENT = "placement.resource_provider.cannot_delete_parent"
PROVIDER_NOT_FOUND = "placement.resource_provider.not_found"

Refusals = Mapping[type[PlacementError], tuple[int, str]]
"""For each kind of error the status, and a sentence with `{error}` for what the error says."""

_CODES: tuple[tuple[type[PlacementError], str], ...] = (
    (ConcurrentUpdate, CONCURRENT_UPDATE),
    (InventoryInUse, INVENTORY_IN_USE),
    (ReshapedProviderNotFound, PROVIDER_NOT_FOUND),
    (TreeRefused, NOT_OWN),
)


@contextmanager
def refusing(refusals: Refusals) -> Iterator[None]:
    """Turn the named errors into answers; the first kind that fits is taken."""
    try:
        yield
    except PlacementError as error:
        for kind, (status, sentence) in refusals.items():
            if isinstance(error, kind):
                raise HttpError(status, sentence.format(error=error), code=_code(error)) from error
        raise


def default_answer(error: PlacementError) -> HttpError:
    """For an error that a handler has no sentence of its own for."""
    return HttpError(status_of(error), str(error), code=_code(error))


def status_of(error: PlacementError) -> int:
    if isinstance(error, TreeRefused):
        return 403
    return 409 if isinstance(error, ConflictError) else 404


def _code(error: PlacementError) -> str | None:
    return next((code for kind, code in _CODES if isinstance(error, kind)), None)
