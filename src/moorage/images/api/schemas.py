"""What the Image API answers and takes, as JSON schemas."""

from __future__ import annotations

from typing import Any

from moorage.http.schema import Schema
from moorage.images.members import STATUSES

DISK_FORMATS = ("ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop")
CONTAINER_FORMATS = ("ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed")
VISIBILITIES = ("community", "public", "private", "shared")
_LONGEST_PROPERTY = 65535
_MOST_PROPERTIES = 128
MOST_TAGS = 128
LONGEST_TAG = 255
_LARGEST = 2**31 - 1

_TEXT = {"type": ["null", "string"]}
_NUMBER = {"type": ["null", "integer"]}
_SIZE = {"type": "integer", "minimum": 0, "maximum": _LARGEST}
_TAGS = {
    "type": "array",
    "items": {"type": "string", "maxLength": LONGEST_TAG},
    "maxItems": MOST_TAGS,
}

GIVEN: dict[str, Any] = {
    "name": {"type": ["null", "string"], "maxLength": 255},
    "visibility": {"type": "string", "enum": list(VISIBILITIES)},
    "protected": {"type": "boolean"},
    "os_hidden": {"type": "boolean"},
    "owner": {"type": ["null", "string"], "minLength": 1, "maxLength": 255},
    "disk_format": {"type": ["null", "string"], "enum": [None, *DISK_FORMATS]},
    "container_format": {"type": ["null", "string"], "enum": [None, *CONTAINER_FORMATS]},
    "min_disk": _SIZE,
    "min_ram": _SIZE,
    "tags": _TAGS,
}
"""What callers may say of an image beside its properties."""

READ_ONLY = frozenset(
    {
        *("status", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value"),
        *("created_at", "updated_at", "self", "file", "schema", "direct_url", "stores"),
    }
)

PROPERTY: dict[str, Any] = {"type": "string", "maxLength": _LONGEST_PROPERTY}

NEW = Schema(
    {
        "type": "object",
        "properties": {"id": {"type": "string", "format": "uuid"}, **GIVEN},
        "propertyNames": {"maxLength": 255, "minLength": 1},
        "additionalProperties": PROPERTY,
        "maxProperties": _MOST_PROPERTIES + len(GIVEN) + 1,
    }
)

CHANGED = Schema(
    {
        "type": "object",
        "properties": GIVEN,
        "propertyNames": {"maxLength": 255, "minLength": 1},
        "additionalProperties": PROPERTY,
        "maxProperties": _MOST_PROPERTIES + len(GIVEN),
    }
)
"""An image after a change, as far as callers say what it is."""

_PATH = {"type": "string", "pattern": "^/.+"}
PATCH = Schema(
    {
        "type": "array",
        "maxItems": 1000,
        "items": {
            "type": "object",
            "properties": {"op": {"enum": ["add", "replace", "remove"]}, "path": _PATH, "value": {}},
            "required": ["op", "path"],
            "additionalProperties": False,
        },
    }
)

_URL = {"type": "string", "pattern": "^https?://[^/@\\s]+/\\S*$", "maxLength": 2000}
"""Without a password in it: everybody who sees the image's machine would see it."""

LOCATION = Schema(
    {
        "type": "object",
        "properties": {
            "url": _URL,
            "metadata": {"type": "object"},
            "validation_data": {
                "type": "object",
                "properties": {
                    "checksum": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
                    "os_hash_algo": {"enum": ["md5", "sha256", "sha512"]},
                    "os_hash_value": {"type": "string", "pattern": "^[0-9a-f]{32,128}$"},
                },
                "additionalProperties": False,
            },
        },
        "required": ["url"],
        "additionalProperties": False,
    }
)

IMPORT = Schema(
    {
        "type": "object",
        "properties": {
            "method": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "uri": _URL},
                "required": ["name"],
            },
            "stores": {"type": "array", "items": {"type": "string"}},
            "all_stores": {"type": ["null", "boolean"]},
            "all_stores_must_succeed": {"type": ["null", "boolean"]},
        },
        "required": ["method"],
    }
)

NEW_MEMBER = Schema(
    {
        "type": "object",
        "properties": {"member": {"type": "string", "minLength": 1, "maxLength": 255}},
        "required": ["member"],
    }
)
MEMBER_ANSWER = Schema(
    {
        "type": "object",
        "properties": {"status": {"enum": list(STATUSES)}},
        "required": ["status"],
    }
)

MEMBER_DOCUMENT: dict[str, Any] = {
    "name": "member",
    "properties": {
        **dict.fromkeys(("member_id", "image_id", "created_at", "updated_at", "schema"), _TEXT),
        "status": {"type": "string", "enum": list(STATUSES)},
    },
}
MEMBERS_DOCUMENT: dict[str, Any] = {
    "name": "members",
    "properties": {"members": {"type": "array", "items": MEMBER_DOCUMENT}, "schema": _TEXT},
    "links": [{"href": "{schema}", "rel": "describedby"}],
}

IMAGE_DOCUMENT: dict[str, Any] = {
    "name": "image",
    "properties": {
        **dict.fromkeys(("id", "name", "status", "visibility", "owner", "checksum", "disk_format"), _TEXT),
        **dict.fromkeys(("container_format", "created_at", "updated_at", "self", "file", "schema"), _TEXT),
        **dict.fromkeys(("os_hash_algo", "os_hash_value"), _TEXT),
        **dict.fromkeys(("size", "virtual_size", "min_ram", "min_disk"), _NUMBER),
        "protected": {"type": "boolean"},
        "os_hidden": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": {"type": "string"},
    "links": [{"href": "{self}", "rel": "self"}, {"href": "{schema}", "rel": "describedby"}],
}
IMAGES_DOCUMENT: dict[str, Any] = {
    "name": "images",
    "properties": {
        "images": {"type": "array", "items": IMAGE_DOCUMENT},
        **dict.fromkeys(("first", "next", "schema"), _TEXT),
    },
    "links": [{"href": "{first}", "rel": "first"}, {"href": "{next}", "rel": "next"}],
}
