"""Query strings that can't be answered: one place that gives them their 400."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moorage.http.errors import HttpError
from moorage.placement.errors import ClassNotFound, TraitNotFound
from moorage.placement.fleet.names import UnknownClassError, UnknownTraitError
from moorage.placement.search.parse import QueryError


@contextmanager
def parsing(unknown_trait: str = "{error}") -> Iterator[None]:
    try:
        yield
    except QueryError as error:
        raise HttpError(400, str(error), code=error.code) from error
    except UnknownClassError as error:
        detail = f"Invalid resource class in resources parameter: {ClassNotFound(error.name)}"
        raise HttpError(400, detail) from error
    except UnknownTraitError as error:
        raise HttpError(400, unknown_trait.format(error=TraitNotFound(error.name))) from error
