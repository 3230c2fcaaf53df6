"""JSON schemas of what is sent about moves and rebuilds, each with the microversion from which it holds."""

from __future__ import annotations

from moorage.compute_api import schema_types as types
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.schema_types import Json, closed, tolerant, wrapped
from moorage.compute_api.servers.server_schemas import (
    CERTIFICATES,
    DISK_CONFIG,
    HOSTNAME,
    IPV4,
    IPV6,
    METADATA_ITEMS,
    PERSONALITY,
)
from moorage.http.schema import Schema, VersionedSchema

_HOST_OR_NULL: Json = {**types.HOST, "type": ["string", "null"]}

# ---------------------------------------------------------------- rebuild

_REBUILD_2_1: Json = {
    "name": types.NAME,
    "imageRef": {"type": "string", "format": "uuid"},
    "adminPass": types.STRING,
    "metadata": METADATA_ITEMS,
    "preserve_ephemeral": types.BOOLEAN,
    "OS-DCF:diskConfig": DISK_CONFIG,
    "accessIPv4": IPV4,
    "accessIPv6": IPV6,
    "personality": PERSONALITY,
}
_REBUILD_2_19: Json = {**_REBUILD_2_1, "description": types.DESCRIPTION}
_REBUILD_2_54: Json = {**_REBUILD_2_19, "key_name": {**types.NAME, "type": ["string", "null"]}}
_REBUILD_2_57: Json = {
    **{name: schema for name, schema in _REBUILD_2_54.items() if name != "personality"},
    "user_data": {"type": ["string", "null"], "maxLength": 65535},
}
_REBUILD_2_63: Json = {**_REBUILD_2_57, "trusted_image_certificates": CERTIFICATES}
_REBUILD_2_90: Json = {**_REBUILD_2_63, "hostname": HOSTNAME}
_REBUILD_2_94: Json = {**_REBUILD_2_63, "hostname": types.HOST}


def _rebuild(properties: Json) -> Json:
    return wrapped("rebuild", closed(properties, ("imageRef",)))


REBUILD = VersionedSchema(
    {
        Microversion.FIRST: _rebuild(_REBUILD_2_1),
        Microversion.SERVER_DESCRIPTIONS: _rebuild(_REBUILD_2_19),
        Microversion.KEY_AT_REBUILD: _rebuild(_REBUILD_2_54),
        Microversion.USER_DATA_INSTEAD_OF_FILES: _rebuild(_REBUILD_2_57),
        Microversion.TRUSTED_IMAGE_CERTIFICATES: _rebuild(_REBUILD_2_63),
        Microversion.HOSTNAMES: _rebuild(_REBUILD_2_90),
        Microversion.QUALIFIED_HOSTNAMES: _rebuild(_REBUILD_2_94),
    }
)

# ---------------------------------------------------------------- resize and cold migration

RESIZE = Schema(
    wrapped(
        "resize",
        closed(
            {"flavorRef": {"type": ["string", "integer"], "minLength": 1}, "OS-DCF:diskConfig": DISK_CONFIG},
            ("flavorRef",),
        ),
    )
)
CONFIRM_RESIZE = Schema(wrapped("confirmResize", {}))
REVERT_RESIZE = Schema(wrapped("revertResize", {}))
MIGRATE = VersionedSchema(
    {
        Microversion.FIRST: wrapped("migrate", {}),
        Microversion.MIGRATION_TO_NAMED_HOST: wrapped(
            "migrate", {**closed({"host": _HOST_OR_NULL}), "type": ["object", "null"]}
        ),
    }
)

# ---------------------------------------------------------------- live migration

_LIVE_2_1: Json = {
    "block_migration": types.BOOLEAN,
    "disk_over_commit": types.BOOLEAN,
    "host": _HOST_OR_NULL,
}
_LIVE_2_25: Json = {
    "block_migration": {**types.BOOLEAN, "enum": [*types.BOOLEAN["enum"], "auto"]},
    "host": _HOST_OR_NULL,
}


def _live(properties: Json, *required: str) -> Json:
    return wrapped("os-migrateLive", closed(properties, required))


MIGRATE_LIVE = VersionedSchema(
    {
        Microversion.FIRST: _live(_LIVE_2_1, "block_migration", "disk_over_commit", "host"),
        Microversion.BLOCK_MIGRATION_CHOSEN: _live(_LIVE_2_25, "block_migration", "host"),
        Microversion.LIVE_MIGRATION_TO_CHECKED_HOST: _live(
            {**_LIVE_2_25, "force": types.BOOLEAN}, "block_migration", "host"
        ),
        Microversion.NO_FORCED_MOVES: _live(_LIVE_2_25, "block_migration", "host"),
    }
)
FORCE_COMPLETE = Schema(wrapped("force_complete", {"type": "null"}))

# ---------------------------------------------------------------- evacuation

_EVACUATE_2_14: Json = {"host": types.HOST, "adminPass": types.STRING}
EVACUATE = VersionedSchema(
    {
        Microversion.FIRST: wrapped(
            "evacuate", closed({**_EVACUATE_2_14, "onSharedStorage": types.BOOLEAN}, ("onSharedStorage",))
        ),
        Microversion.SIMPLER_EVACUATION: wrapped("evacuate", closed(_EVACUATE_2_14)),
        Microversion.EVACUATION_TO_CHECKED_HOST: wrapped(
            "evacuate", closed({**_EVACUATE_2_14, "force": types.BOOLEAN})
        ),
        Microversion.NO_FORCED_MOVES: wrapped("evacuate", closed(_EVACUATE_2_14)),
    }
)

# ---------------------------------------------------------------- lists

_LIST_2_1: Json = dict.fromkeys(
    ("hidden", "host", "instance_uuid", "source_compute", "status", "migration_type"), types.STRING
)
_LIST_2_59: Json = {**_LIST_2_1, **types.PAGE, "changes-since": types.STRING}
_LIST_2_66: Json = {**_LIST_2_59, "changes-before": types.STRING}
_ONCE = ["limit", "marker", "changes-since", "changes-before", "user_id", "project_id"]
LIST_MIGRATIONS = VersionedSchema(
    {
        Microversion.FIRST: tolerant(_LIST_2_1),
        Microversion.PAGES_OF_MIGRATIONS: closed(_LIST_2_59, single=_ONCE),
        Microversion.CHANGES_BEFORE: closed(_LIST_2_66, single=_ONCE),
        Microversion.OWNERS_OF_MIGRATIONS: closed(
            {**_LIST_2_66, "user_id": types.STRING, "project_id": types.STRING}, single=_ONCE
        ),
    }
)
