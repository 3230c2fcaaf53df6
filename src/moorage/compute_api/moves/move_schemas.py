"""JSON schemas of what is sent about moves and rebuilds, each with the microversion from which it holds."""

from __future__ import annotations

from moorage.compute_api import schema_types as types
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
        (2, 1): _rebuild(_REBUILD_2_1),
        (2, 19): _rebuild(_REBUILD_2_19),
        (2, 54): _rebuild(_REBUILD_2_54),
        (2, 57): _rebuild(_REBUILD_2_57),
        (2, 63): _rebuild(_REBUILD_2_63),
        (2, 90): _rebuild(_REBUILD_2_90),
        (2, 94): _rebuild(_REBUILD_2_94),
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
        (2, 1): wrapped("migrate", {}),
        (2, 56): wrapped("migrate", {**closed({"host": _HOST_OR_NULL}), "type": ["object", "null"]}),
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
        (2, 1): _live(_LIVE_2_1, "block_migration", "disk_over_commit", "host"),
        (2, 25): _live(_LIVE_2_25, "block_migration", "host"),
        (2, 30): _live({**_LIVE_2_25, "force": types.BOOLEAN}, "block_migration", "host"),
        (2, 68): _live(_LIVE_2_25, "block_migration", "host"),
    }
)
FORCE_COMPLETE = Schema(wrapped("force_complete", {"type": "null"}))

# ---------------------------------------------------------------- evacuation

_EVACUATE_2_14: Json = {"host": types.HOST, "adminPass": types.STRING}
EVACUATE = VersionedSchema(
    {
        (2, 1): wrapped(
            "evacuate", closed({**_EVACUATE_2_14, "onSharedStorage": types.BOOLEAN}, ("onSharedStorage",))
        ),
        (2, 14): wrapped("evacuate", closed(_EVACUATE_2_14)),
        (2, 29): wrapped("evacuate", closed({**_EVACUATE_2_14, "force": types.BOOLEAN})),
        (2, 68): wrapped("evacuate", closed(_EVACUATE_2_14)),
    }
)

# ---------------------------------------------------------------- lists

_LIST_2_1: Json = dict.fromkeys(
    ("hidden", "host", "instance_uuid", "source_compute", "status", "migration_type"), types.STRING
)
_LIST_2_59: Json = {**_LIST_2_1, **types.PAGE, "changes-since": types.STRING}
_LIST_2_66: Json = {**_LIST_2_59, "changes-before": types.STRING}
LIST_MIGRATIONS = VersionedSchema(
    {
        (2, 1): tolerant(_LIST_2_1),
        (2, 59): closed(_LIST_2_59),
        (2, 66): closed(_LIST_2_66),
        (2, 80): closed({**_LIST_2_66, "user_id": types.STRING, "project_id": types.STRING}),
    }
)
