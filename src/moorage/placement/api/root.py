"""The version document, by which clients find out what this service speaks."""

from __future__ import annotations

from moorage.core.clock import utcnow
from moorage.core.microversions import text
from moorage.http.call import Call
from moorage.http.reply import Reply
from moorage.placement.api.versions import VERSIONS
from moorage.placement.service import PlacementService

_DOCUMENT = {
    "versions": [
        {
            "id": f"v{text(VERSIONS.lowest)}",
            "max_version": text(VERSIONS.highest),
            "min_version": text(VERSIONS.lowest),
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
            "extensions": [
                {"name": "moorage-report", "href": "/moorage/v1/providers"},
                {"name": "moorage-aggregates", "href": "/moorage/v1/aggregates"},
                {"name": "moorage-why", "href": "/moorage/v1/why"},
                {"name": "moorage-capacity", "href": "/moorage/v1/capacity"},
                {"name": "moorage-counters", "href": "/moorage/v1/counters"},
                {"name": "openapi", "href": "/openapi.json"},
            ],
        }
    ]
}


def home(_service: PlacementService, _call: Call) -> Reply:
    """Tell which versions of the API are served."""
    return Reply(body=_DOCUMENT, last_modified=utcnow())
