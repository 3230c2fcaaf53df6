"""JSON schemas of what is sent about servers, each with the microversion from which it holds."""

from __future__ import annotations

from moorage.compute.servers.labels import MAX_TAGS
from moorage.compute_api import schema_types as types
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.schema_types import Json, closed, once, wrapped
from moorage.http.schema import Schema, VersionedSchema

UUID: Json = {"type": "string", "format": "uuid"}
UUID_OR_NULL: Json = {"type": ["string", "null"], "format": "uuid"}
HOSTNAME: Json = {
    "type": "string",
    "minLength": 2,
    "maxLength": 63,
    "pattern": "^[a-zA-Z0-9]+[a-zA-Z0-9-]*[a-zA-Z0-9]+$",
}
METADATA_ITEMS: Json = {
    "type": "object",
    "patternProperties": {types.SPEC_KEY: {"type": "string", "maxLength": 255}},
    "additionalProperties": False,
}
DEVICE_TAG: Json = {"type": "string", "minLength": 1, "maxLength": 60, "pattern": r"^[^,/\x00]*$"}
_TAGS: Json = {"type": "array", "items": DEVICE_TAG, "maxItems": MAX_TAGS}
ADDRESS: Json = {"type": "string", "oneOf": [{"format": "ipv4"}, {"format": "ipv6"}]}
IPV4: Json = {"type": "string", "format": "ipv4"}
IPV6: Json = {"type": "string", "format": "ipv6"}
DISK_CONFIG: Json = {"type": "string", "enum": ["AUTO", "MANUAL"]}
CERTIFICATES: Json = {
    "type": ["array", "null"],
    "minItems": 1,
    "maxItems": 50,
    "uniqueItems": True,
    "items": {"type": "string", "minLength": 1},
}

TAG = Schema(DEVICE_TAG)


# ---------------------------------------------------------------- create

_OLD_DEVICE: Json = {
    "virtual_name": {"type": "string", "maxLength": 255},
    "volume_id": UUID,
    "snapshot_id": UUID,
    "volume_size": {
        "type": ["integer", "string"],
        "pattern": "^[0-9]+$",
        "minimum": 1,
        "maximum": types.MAX_INT,
    },
    "device_name": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9._/-]*$"},
    "delete_on_termination": types.BOOLEAN,
    "no_device": {},
    "connection_info": {"type": "string", "maxLength": 16777215},
}
_DEVICE: Json = {
    **_OLD_DEVICE,
    "source_type": {"type": "string", "enum": ["volume", "image", "snapshot", "blank"]},
    "uuid": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9._-]*$"},
    "image_id": UUID,
    "destination_type": {"type": "string", "enum": ["local", "volume"]},
    "guest_format": {"type": "string", "maxLength": 255},
    "device_type": {"type": "string", "maxLength": 255},
    "disk_bus": {"type": "string", "maxLength": 255},
    "boot_index": {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]+$"},
}
_UUIDS: Json = {"type": "array", "items": UUID}
HINTS: Json = {
    "type": "object",
    "properties": {
        "group": {"oneOf": [_UUIDS, UUID]},
        "different_host": {"oneOf": [UUID, _UUIDS]},
        "same_host": {"type": ["string", "array"], "items": UUID},
        "query": {"type": ["string", "object"]},
        "target_cell": types.NAME,
        "different_cell": {"type": ["string", "array"], "items": types.STRING},
        "build_near_host_ip": ADDRESS,
        "cidr": {"type": "string", "pattern": "^/[0-9a-f.:]+$"},
    },
    "additionalProperties": True,
}


def _devices(**more: Json) -> Json:
    return {"type": "array", "items": closed({**_DEVICE, **more})}


def _networks(uuid: Json, **more: Json) -> Json:
    one = closed({"fixed_ip": ADDRESS, "port": UUID_OR_NULL, "uuid": uuid, **more})
    return {"type": "array", "items": one}


def _or_word(networks: Json) -> Json:
    return {"oneOf": [networks, {"type": "string", "enum": ["none", "auto"]}]}


PERSONALITY: Json = {"type": "array", "items": closed({"path": types.STRING, "contents": types.STRING})}
_SERVER_2_1: Json = {
    "name": types.NAME,
    "imageRef": {"oneOf": [UUID, {"type": "string", "maxLength": 0}]},
    "flavorRef": {"type": ["string", "integer"], "minLength": 1},
    "adminPass": types.STRING,
    "metadata": METADATA_ITEMS,
    "networks": _networks(types.STRING),
    "OS-DCF:diskConfig": DISK_CONFIG,
    "accessIPv4": IPV4,
    "accessIPv6": IPV6,
    "personality": PERSONALITY,
    "availability_zone": types.NAME,
    "block_device_mapping": {"type": "array", "items": closed(_OLD_DEVICE)},
    "block_device_mapping_v2": _devices(),
    "config_drive": types.BOOLEAN,
    "key_name": types.NAME,
    "min_count": types.POSITIVE,
    "max_count": types.POSITIVE,
    "return_reservation_id": types.BOOLEAN,
    "security_groups": {"type": "array", "items": closed({"name": types.NAME})},
    "user_data": {"type": "string", "maxLength": 65535},
}
_SERVER_2_19: Json = {**_SERVER_2_1, "description": types.DESCRIPTION}
_SERVER_2_32: Json = {
    **_SERVER_2_19,
    "networks": _networks(types.STRING, tag=DEVICE_TAG),
    "block_device_mapping_v2": _devices(tag=DEVICE_TAG),
}
_SERVER_2_33: Json = {**_SERVER_2_19, "networks": _networks(types.STRING, tag=DEVICE_TAG)}
_SERVER_2_37: Json = {**_SERVER_2_33, "networks": _or_word(_networks(UUID))}
_SERVER_2_42: Json = {
    **_SERVER_2_37,
    "networks": _or_word(_networks(UUID, tag=DEVICE_TAG)),
    "block_device_mapping_v2": _devices(tag=DEVICE_TAG),
}
_SERVER_2_52: Json = {**_SERVER_2_42, "tags": _TAGS}
_SERVER_2_57: Json = {key: value for key, value in _SERVER_2_52.items() if key != "personality"}
_SERVER_2_63: Json = {**_SERVER_2_57, "trusted_image_certificates": CERTIFICATES}
_VOLUME_TYPE: Json = {"type": ["string", "null"], "maxLength": 255}
_SERVER_2_67: Json = {
    **_SERVER_2_63,
    "block_device_mapping_v2": _devices(tag=DEVICE_TAG, volume_type=_VOLUME_TYPE),
}
_SERVER_2_74: Json = {**_SERVER_2_67, "host": types.HOST, "hypervisor_hostname": types.HOST}
_SERVER_2_90: Json = {**_SERVER_2_74, "hostname": HOSTNAME}
_SERVER_2_94: Json = {**_SERVER_2_90, "hostname": types.HOST}


def _create(server: Json, *required: str) -> Json:
    properties = {
        "server": closed(server, ("name", "flavorRef", *required)),
        "os:scheduler_hints": HINTS,
        "OS-SCH-HNT:scheduler_hints": HINTS,
    }
    return closed(properties, ("server",))


CREATE = VersionedSchema(
    {
        Microversion.FIRST: _create(_SERVER_2_1),
        Microversion.SERVER_DESCRIPTIONS: _create(_SERVER_2_19),
        Microversion.DEVICE_TAGS: _create(_SERVER_2_32),
        Microversion.PAGES_OF_HYPERVISORS: _create(_SERVER_2_33),
        Microversion.AUTO_OR_NO_NETWORKS: _create(_SERVER_2_37, "networks"),
        Microversion.DEVICE_TAGS_AGAIN: _create(_SERVER_2_42, "networks"),
        Microversion.TAGS_AT_CREATION: _create(_SERVER_2_52, "networks"),
        Microversion.USER_DATA_INSTEAD_OF_FILES: _create(_SERVER_2_57, "networks"),
        Microversion.TRUSTED_IMAGE_CERTIFICATES: _create(_SERVER_2_63, "networks"),
        Microversion.VOLUME_TYPES: _create(_SERVER_2_67, "networks"),
        Microversion.BOOT_ON_NAMED_HOST: _create(_SERVER_2_74, "networks"),
        Microversion.HOSTNAMES: _create(_SERVER_2_90, "networks"),
        Microversion.QUALIFIED_HOSTNAMES: _create(_SERVER_2_94, "networks"),
    }
)

# ---------------------------------------------------------------- update, metadata, tags

_UPDATE_2_1: Json = {
    "name": types.NAME,
    "OS-DCF:diskConfig": DISK_CONFIG,
    "accessIPv4": IPV4,
    "accessIPv6": IPV6,
}
_UPDATE_2_19: Json = {**_UPDATE_2_1, "description": types.DESCRIPTION}
_UPDATE_2_94: Json = {**_UPDATE_2_19, "hostname": types.HOST}


UPDATE = VersionedSchema(
    {
        Microversion.FIRST: wrapped("server", closed(_UPDATE_2_1)),
        Microversion.SERVER_DESCRIPTIONS: wrapped("server", closed(_UPDATE_2_19)),
        Microversion.HOSTNAMES: wrapped("server", closed({**_UPDATE_2_19, "hostname": HOSTNAME})),
        Microversion.QUALIFIED_HOSTNAMES: wrapped("server", closed(_UPDATE_2_94)),
        Microversion.ZONE_UNPINNED: wrapped(
            "server",
            closed({**_UPDATE_2_94, "pinned_availability_zone": {**types.NAME, "type": ["string", "null"]}}),
        ),
    }
)
METADATA = Schema(wrapped("metadata", METADATA_ITEMS))
METADATA_ITEM = Schema(
    closed({"meta": {**METADATA_ITEMS, "minProperties": 1, "maxProperties": 1}}, ("meta",)),
)
_LIST_VOLUMES: Json = {"limit": types.LIMIT, "offset": types.LIMIT}
LIST_VOLUMES = VersionedSchema(
    {
        Microversion.FIRST: types.tolerant(_LIST_VOLUMES),
        Microversion.CONSISTENT_ANSWERS: closed(_LIST_VOLUMES),
    }
)
_SHARE_TAG: Json = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9-]*$"}
ATTACH_SHARE = Schema(wrapped("share", closed({"share_id": UUID, "tag": _SHARE_TAG}, ("share_id",))))
SET_TAGS = Schema(wrapped("tags", _TAGS))

# ---------------------------------------------------------------- actions

_REBOOTS = ["HARD", "Hard", "hard", "SOFT", "Soft", "soft"]
_NOTHING: Json = {"type": "null"}
_ANY: Json = {}
_LOCK_REASON = closed({"locked_reason": {"type": "string", "minLength": 1, "maxLength": 255}})


START = Schema(wrapped("os-start", _ANY))
STOP = Schema(wrapped("os-stop", _ANY))
PAUSE = Schema(wrapped("pause", _ANY))
UNPAUSE = Schema(wrapped("unpause", _ANY))
SUSPEND = Schema(wrapped("suspend", _ANY))
RESUME = Schema(wrapped("resume", _ANY))
RESCUE = Schema(
    wrapped(
        "rescue",
        {**closed({"adminPass": types.STRING, "rescue_image_ref": UUID}), "type": ["object", "null"]},
    )
)
UNRESCUE = Schema(wrapped("unrescue", _ANY))
_IMAGE: Json = {"name": types.NAME, "metadata": METADATA_ITEMS}
CREATE_IMAGE = Schema(wrapped("createImage", closed(_IMAGE, ("name",))))
CREATE_BACKUP = Schema(
    wrapped(
        "createBackup",
        closed(
            {**_IMAGE, "backup_type": types.STRING, "rotation": types.NON_NEGATIVE},
            ("name", "backup_type", "rotation"),
        ),
    )
)
SHELVE = Schema(wrapped("shelve", _ANY))
SHELVE_OFFLOAD = Schema(wrapped("shelveOffload", _ANY))
_ZONE = closed({"availability_zone": types.NAME}, ("availability_zone",))
_PLACE = closed({"availability_zone": {"type": ["string", "null"]}, "host": types.STRING})
UNSHELVE = VersionedSchema(
    {
        Microversion.FIRST: wrapped("unshelve", _ANY),
        Microversion.UNSHELVE_TO_ZONE: wrapped("unshelve", {**_ZONE, "type": ["object", "null"]}),
        Microversion.UNSHELVE_TO_HOST: wrapped("unshelve", {**_PLACE, "type": ["object", "null"]}),
    }
)
TRIGGER_CRASH_DUMP = Schema(wrapped("trigger_crash_dump", _NOTHING))
CHANGE_PASSWORD = Schema(wrapped("changePassword", closed({"adminPass": types.STRING}, ("adminPass",))))
RESTORE = Schema(wrapped("restore", _ANY))
INJECT_NETWORK_INFO = Schema(wrapped("injectNetworkInfo", _ANY))
_GROUP = closed({"name": {"type": "string", "minLength": 1}}, ("name",))
ADD_SECURITY_GROUP = Schema({**wrapped("addSecurityGroup", _GROUP), "additionalProperties": True})
REMOVE_SECURITY_GROUP = Schema({**wrapped("removeSecurityGroup", _GROUP), "additionalProperties": True})
REBOOT = Schema(wrapped("reboot", closed({"type": {"type": "string", "enum": _REBOOTS}}, ("type",))))
LOCK = VersionedSchema(
    {
        Microversion.FIRST: wrapped("lock", _ANY),
        Microversion.LOCK_REASON: wrapped("lock", {"oneOf": [_LOCK_REASON, _NOTHING]}),
    }
)
UNLOCK = Schema(wrapped("unlock", _ANY))
FORCE_DELETE = Schema(wrapped("forceDelete", _ANY))
_NETWORK_ID: Json = {"type": ["string", "number"], "minLength": 1, "maxLength": 36}
ADD_FIXED_IP = Schema(wrapped("addFixedIp", closed({"networkId": _NETWORK_ID}, ("networkId",))))
REMOVE_FIXED_IP = Schema(wrapped("removeFixedIp", closed({"address": ADDRESS}, ("address",))))
ADD_FLOATING_IP = Schema(
    wrapped("addFloatingIp", closed({"address": ADDRESS, "fixed_address": ADDRESS}, ("address",)))
)
REMOVE_FLOATING_IP = Schema(wrapped("removeFloatingIp", closed({"address": ADDRESS}, ("address",))))
RESET_STATE = Schema(
    wrapped("os-resetState", closed({"state": {"type": "string", "enum": ["active", "error"]}}, ("state",)))
)

# ---------------------------------------------------------------- instance actions, external events

_ACTIONS_2_58: Json = {**types.PAGE, "changes-since": types.STRING}
LIST_ACTIONS = VersionedSchema(
    {
        Microversion.FIRST: {"type": "object"},
        Microversion.PAGES_OF_ACTIONS: once(_ACTIONS_2_58),
        Microversion.CHANGES_BEFORE: once({**_ACTIONS_2_58, "changes-before": types.STRING}),
    }
)

_EVENTS = ("network-changed", "network-vif-plugged", "network-vif-unplugged", "network-vif-deleted")


def _events(*further: str) -> Json:
    event = closed(
        {
            "name": {"type": "string", "enum": [*_EVENTS, *further]},
            "server_uuid": UUID,
            "status": {"type": "string", "enum": ["failed", "completed", "in-progress"]},
            "tag": {"type": "string", "maxLength": 255},
        },
        ("name", "server_uuid"),
    )
    return closed({"events": {"type": "array", "minItems": 1, "items": event}}, ("events",))


EXTERNAL_EVENTS = VersionedSchema(
    {
        Microversion.FIRST: _events(),
        Microversion.MORE_EVENTS: _events("volume-extended"),
        Microversion.POWER_UPDATE_EVENT: _events("volume-extended", "power-update"),
        Microversion.ACCELERATOR_EVENT: _events(
            "volume-extended", "power-update", "accelerator-request-bound"
        ),
        Microversion.REBUILD_OF_VOLUME: _events(
            "volume-extended", "power-update", "accelerator-request-bound", "volume-reimaged"
        ),
    }
)
