"""Microversions: which one a request speaks, and the range that a service offers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import microversion_parse

from moorage.http.errors import HttpError

Version = tuple[int, int]


def text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


@dataclass(frozen=True)
class VersionRange:
    """The microversions of one service, from `lowest` to `highest`, all of one major number."""

    service_type: str
    lowest: Version
    highest: Version

    def requested(self, header: str | None) -> Version:
        """The version that the `OpenStack-API-Version` header asks for; the lowest one without a header."""
        return _parse(self, header or "")

    def header(self, version: Version) -> str:
        return f"{self.service_type} {text(version)}"

    def names(self) -> list[str]:
        major = self.lowest[0]
        return [f"{major}.{minor}" for minor in range(self.lowest[1], self.highest[1] + 1)]


@lru_cache(maxsize=1024)
def _parse(versions: VersionRange, header: str) -> Version:
    headers = {microversion_parse.STANDARD_HEADER: header} if header else {}
    try:
        found = microversion_parse.extract_version(headers, versions.service_type, versions.names())
    except ValueError as error:
        raise HttpError(
            406,
            f"Invalid microversion: {error}",
            extra={"max_version": text(versions.highest), "min_version": text(versions.lowest)},
        ) from error
    except TypeError as error:
        raise HttpError(400, f"Invalid microversion: {error}") from error
    return (int(found.major), int(found.minor))
