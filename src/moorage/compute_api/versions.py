"""The range of microversions that the Compute API serves, and its version documents."""

from __future__ import annotations

from typing import Any

from moorage.compute_api.microversions import Microversion
from moorage.core.microversions import text
from moorage.http.version import VersionRange

VERSIONS = VersionRange(
    "compute",
    Microversion.lowest(),
    Microversion.highest(),
    legacy_header="x-openstack-nova-api-version",
)

_ENTRIES: tuple[dict[str, Any], ...] = (
    {
        "id": "v2.0",
        "status": "DEPRECATED",
        "version": "",
        "min_version": "",
        "updated": "2011-01-21T11:33:21Z",
        "path": "v2",
        "media": "application/vnd.openstack.compute+json;version=2",
    },
    {
        "id": "v2.1",
        "status": "CURRENT",
        "version": text(VERSIONS.highest),
        "min_version": text(VERSIONS.lowest),
        "updated": "2013-07-23T11:33:21Z",
        "path": "v2.1",
        "media": "application/vnd.openstack.compute+json;version=2.1",
    },
)
_SHOWN = ("id", "status", "version", "min_version", "updated")


def all_versions(prefix: str) -> dict[str, Any]:
    """The document at the root; `prefix` is the URL that the service is mounted at."""
    return {"versions": [{**_head(entry), "links": [_self(prefix, entry)]} for entry in _ENTRIES]}


def one_version(prefix: str, path: str) -> dict[str, Any]:
    """The document of the version that is mounted at `path`."""
    entry = next(entry for entry in _ENTRIES if entry["path"] == path)
    described = {"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"}
    return {
        "version": {
            **_head(entry),
            "links": [_self(prefix, entry), described],
            "media-types": _media_types(entry),
        }
    }


def choices(prefix: str, path: str) -> dict[str, Any]:
    """What somebody gets who asked for `path` without naming a version."""
    return {
        "choices": [
            {
                "id": entry["id"],
                "status": entry["status"],
                "links": [{"rel": "self", "href": f"{prefix}/{entry['path']}{path}"}],
                "media-types": _media_types(entry),
            }
            for entry in _ENTRIES
        ]
    }


def _head(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in _SHOWN}


def _self(prefix: str, entry: dict[str, Any]) -> dict[str, str]:
    return {"rel": "self", "href": f"{prefix}/{entry['path']}/"}


def _media_types(entry: dict[str, Any]) -> list[dict[str, str]]:
    return [{"base": "application/json", "type": entry["media"]}]
