"""The version document, by which clients find out what this service speaks."""

from __future__ import annotations

from moorage.core.clock import utcnow
from moorage.http.call import Call
from moorage.http.reply import Reply
from moorage.placement.api.versions import VERSIONS
from moorage.placement.service import PlacementService

_DOCUMENT = {
    "versions": [
        {
            "id": f"v{VERSIONS.lowest[0]}.{VERSIONS.lowest[1]}",
            "max_version": f"{VERSIONS.highest[0]}.{VERSIONS.highest[1]}",
            "min_version": f"{VERSIONS.lowest[0]}.{VERSIONS.lowest[1]}",
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
            "extensions": [
                {"name": "moorage-report", "href": "/moorage/v1/providers"},
                {"name": "moorage-aggregates", "href": "/moorage/v1/aggregates"},
                {"name": "moorage-why", "href": "/moorage/v1/why"},
                {"name": "moorage-capacity", "href": "/moorage/v1/capacity"},
                {"name": "openapi", "href": "/openapi.json"},
            ],
        }
    ]
}


def home(_service: PlacementService, _call: Call) -> Reply:
    """Tell which versions of the API are served."""
    return Reply(body=_DOCUMENT, last_modified=utcnow())
