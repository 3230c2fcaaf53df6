"""Microversions: which one a request speaks, and the range that a service offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import microversion_parse

from moorage.core.microversions import Version, text
from moorage.http.errors import HttpError

STANDARD_HEADER = "openstack-api-version"


@dataclass(frozen=True)
class VersionRange:
    """The microversions of one service, from `lowest` to `highest`, all of one major number."""

    service_type: str
    lowest: Version
    highest: Version
    legacy_header: str | None = None
    """An older header, which holds the bare number."""

    def requested(self, header: Callable[[str], str | None]) -> Version:
        """The version that a request's headers ask for; the lowest one if they don't say."""
        legacy = header(self.legacy_header) if self.legacy_header is not None else None
        return _parse(self, header(STANDARD_HEADER) or "", legacy or "")

    def headers(self, version: Version) -> dict[str, str]:
        """What an answer says of the version that it was made for."""
        named = {STANDARD_HEADER: f"{self.service_type} {text(version)}"}
        return named if self.legacy_header is None else {**named, self.legacy_header: text(version)}

    def names(self) -> list[str]:
        major = self.lowest[0]
        return [f"{major}.{minor}" for minor in range(self.lowest[1], self.highest[1] + 1)]


@lru_cache(maxsize=1024)
def _parse(versions: VersionRange, header: str, legacy: str) -> Version:
    standard = {microversion_parse.STANDARD_HEADER: header} if header else {}
    try:
        if legacy and microversion_parse.get_version(standard, versions.service_type) is None:
            standard = {microversion_parse.STANDARD_HEADER: f"{versions.service_type} {legacy}"}
        found = microversion_parse.extract_version(standard, versions.service_type, versions.names())
    except ValueError as error:
        raise HttpError(
            406,
            f"Invalid microversion: {error}",
            extra={"max_version": text(versions.highest), "min_version": text(versions.lowest)},
            headers=_named(versions, standard),
        ) from error
    except TypeError as error:
        raise HttpError(400, f"Invalid microversion: {error}") from error
    return (int(found.major), int(found.minor))


def _named(versions: VersionRange, standard: dict[str, str]) -> dict[str, str]:
    """A service that has an older header, too, says in both which version it does not have."""
    asked = microversion_parse.get_version(standard, versions.service_type)
    if versions.legacy_header is None or asked is None:
        return {}
    named = microversion_parse.parse_version_string(asked)
    return versions.headers((int(named.major), int(named.minor)))
