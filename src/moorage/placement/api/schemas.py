"""JSON schemas of bodies and query strings, each with the microversion from which it holds."""

from __future__ import annotations

from typing import Any

from moorage.http.schema import Schema, VersionedSchema
from moorage.placement.microversions import Microversion
from moorage.placement.store.inventories import MAX_INT

Json = dict[str, Any]

UUID_KEY = "^[0-9a-fA-F-]{36}$"
CLASS_NAME = "^[A-Z0-9_]+$"
CUSTOM_NAME = "^CUSTOM_[A-Z0-9_]+$"
SUFFIX = "[1-9][0-9]*"
SUFFIX_1_33 = "[a-zA-Z0-9_-]{1,64}"
_SINGLE_FLOAT_MAX = 3.40282e38

_STRING: Json = {"type": "string"}
_UUID: Json = {"type": "string", "format": "uuid"}
_INTEGER: Json = {"type": "integer"}
_ID: Json = {"type": "string", "minLength": 1, "maxLength": 255}
_AMOUNTS: Json = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {CLASS_NAME: {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
}


def _object(properties: Json, required: tuple[str, ...] = (), **more: Any) -> Json:
    body = {"type": "object", "properties": properties, "additionalProperties": False, **more}
    return {**body, "required": list(required)} if required else body


# ---------------------------------------------------------------- providers

_NAME: Json = {"type": "string", "maxLength": 200}
_PARENT: Json = {"anyOf": [_UUID, {"type": "null"}]}
CREATE_PROVIDER = VersionedSchema(
    {
        Microversion.FIRST: _object({"name": _NAME, "uuid": _UUID}, ("name",)),
        Microversion.TREES: _object(
            {"name": _NAME, "uuid": _UUID, "parent_provider_uuid": _PARENT}, ("name",)
        ),
    }
)
UPDATE_PROVIDER = VersionedSchema(
    {
        Microversion.FIRST: _object({"name": _NAME}, ("name",)),
        Microversion.TREES: _object({"name": _NAME, "parent_provider_uuid": _PARENT}, ("name",)),
    }
)
_LIST_1_0 = {"name": _STRING, "uuid": _UUID}
_LIST_1_3 = {**_LIST_1_0, "member_of": _STRING}
_LIST_1_4 = {**_LIST_1_3, "resources": _STRING}
_LIST_1_14 = {**_LIST_1_4, "in_tree": _UUID}
_LIST_1_18 = {**_LIST_1_14, "required": _STRING}
LIST_PROVIDERS = VersionedSchema(
    {
        Microversion.FIRST: _object(_LIST_1_0),
        Microversion.PROVIDERS_BY_AGGREGATE: _object(_LIST_1_3),
        Microversion.PROVIDERS_BY_RESOURCES: _object(_LIST_1_4),
        Microversion.TREES: _object(_LIST_1_14),
        Microversion.PROVIDERS_BY_TRAIT: _object(_LIST_1_18),
    }
)

# ---------------------------------------------------------------- inventories


def _bounded(minimum: int) -> Json:
    return {"type": "integer", "minimum": minimum, "maximum": MAX_INT}


_INVENTORY: Json = {
    "resource_provider_generation": _INTEGER,
    "total": _bounded(1),
    "reserved": _bounded(0),
    "min_unit": _bounded(1),
    "max_unit": _bounded(1),
    "step_size": _bounded(1),
    "allocation_ratio": {"type": "number", "maximum": _SINGLE_FLOAT_MAX},
}
_CLASS: Json = {"type": "string", "pattern": CLASS_NAME}
UPDATE_INVENTORY = Schema(_object(_INVENTORY, ("total", "resource_provider_generation")))
CREATE_INVENTORY = Schema(_object({**_INVENTORY, "resource_class": _CLASS}, ("total", "resource_class")))
_SET_INVENTORIES = _object(
    {
        "resource_provider_generation": _INTEGER,
        "inventories": {"type": "object", "patternProperties": {CLASS_NAME: _object(_INVENTORY, ("total",))}},
    },
    ("resource_provider_generation", "inventories"),
)
SET_INVENTORIES = Schema(_SET_INVENTORIES)

# ---------------------------------------------------------------- aggregates, traits, classes

_AGGREGATES: Json = {"type": "array", "items": {**_UUID, "maxLength": 36}, "uniqueItems": True}
SET_AGGREGATES = VersionedSchema(
    {
        Microversion.AGGREGATES: _AGGREGATES,
        Microversion.AGGREGATES_WITH_GENERATION: _object(
            {"aggregates": _AGGREGATES, "resource_provider_generation": _INTEGER},
            ("aggregates", "resource_provider_generation"),
        ),
    }
)
SET_TRAITS = Schema(
    _object(
        {"traits": {"type": "array", "items": _ID}, "resource_provider_generation": _INTEGER},
        ("traits", "resource_provider_generation"),
    )
)
LIST_TRAITS = Schema(_object({"name": _STRING, "associated": _STRING}))
_CUSTOM: Json = {"type": "string", "pattern": CUSTOM_NAME, "maxLength": 255}
CUSTOM_TRAIT = Schema({**_CUSTOM, "minLength": 1})
NAME_CLASS = Schema(_object({"name": _CUSTOM}, ("name",)))

# ---------------------------------------------------------------- allocations

_CLAIM_LIST: Json = {
    "type": "array",
    "minItems": 1,
    "items": _object(
        {"resource_provider": _object({"uuid": _UUID}, ("uuid",)), "resources": _AMOUNTS},
        ("resource_provider", "resources"),
    ),
}


def _claim_dict(least: int) -> Json:
    return {
        "type": "object",
        "minProperties": least,
        "patternProperties": {
            UUID_KEY: _object({"generation": _INTEGER, "resources": _AMOUNTS}, ("resources",)),
        },
        "additionalProperties": False,
    }


_OWNER: Json = {"project_id": _ID, "user_id": _ID}
_NEEDED = ("allocations", "project_id", "user_id")
_CONSUMER_GENERATION: Json = {"consumer_generation": {"type": ["integer", "null"]}}
_MAPPINGS: Json = {
    "mappings": {
        "type": "object",
        "minProperties": 1,
        "patternProperties": {SUFFIX_1_33: {"type": "array", "minItems": 1, "items": _UUID}},
    }
}
_TYPE: Json = {"consumer_type": {**_CLASS, "minLength": 1, "maxLength": 255}}
_DELETABLE = {"allocations": _claim_dict(0), **_OWNER}
_CLAIM_1_28 = _object({**_DELETABLE, **_CONSUMER_GENERATION}, (*_NEEDED, "consumer_generation"))
_CLAIM_1_34 = _object({**_DELETABLE, **_CONSUMER_GENERATION, **_MAPPINGS}, (*_NEEDED, "consumer_generation"))
_CLAIM_1_38 = _object(
    {**_DELETABLE, **_CONSUMER_GENERATION, **_MAPPINGS, **_TYPE},
    (*_NEEDED, "consumer_generation", "consumer_type"),
)
SET_ALLOCATIONS = VersionedSchema(
    {
        Microversion.FIRST: _object({"allocations": _CLAIM_LIST}, ("allocations",)),
        Microversion.OWNERS_OF_ALLOCATIONS: _object({"allocations": _CLAIM_LIST, **_OWNER}, _NEEDED),
        Microversion.ALLOCATIONS_BY_PROVIDER: _object({"allocations": _claim_dict(1), **_OWNER}, _NEEDED),
        Microversion.CONSUMER_GENERATIONS: _CLAIM_1_28,
        Microversion.MAPPINGS: _CLAIM_1_34,
        Microversion.CONSUMER_TYPES: _CLAIM_1_38,
    }
)


def _by_consumer(claim: Json, least: int = 1) -> Json:
    return {
        "type": "object",
        "minProperties": least,
        "patternProperties": {UUID_KEY: claim},
        "additionalProperties": False,
    }


MANAGE_ALLOCATIONS = VersionedSchema(
    {
        Microversion.SEVERAL_CONSUMERS: _by_consumer(_object(_DELETABLE, _NEEDED)),
        Microversion.CONSUMER_GENERATIONS: _by_consumer(_CLAIM_1_28),
        Microversion.MAPPINGS: _by_consumer(_CLAIM_1_34),
        Microversion.CONSUMER_TYPES: _by_consumer(_CLAIM_1_38),
    }
)


def _reshape(claim: Json) -> Json:
    moved: Json = {
        "type": "object",
        "patternProperties": {UUID_KEY: _SET_INVENTORIES},
        "minProperties": 1,
        "additionalProperties": False,
    }
    return _object(
        {"inventories": moved, "allocations": _by_consumer(claim, least=0)}, ("inventories", "allocations")
    )


RESHAPE = VersionedSchema(
    {
        Microversion.RESHAPER: _reshape(_CLAIM_1_28),
        Microversion.MAPPINGS: _reshape(_CLAIM_1_34),
        Microversion.CONSUMER_TYPES: _reshape(_CLAIM_1_38),
    }
)

# ---------------------------------------------------------------- usages, candidates

_USAGES: Json = {"project_id": _ID, "user_id": _ID}
LIST_USAGES = VersionedSchema(
    {
        Microversion.USAGES_OF_PROJECTS: _object(_USAGES, ("project_id",)),
        Microversion.CONSUMER_TYPES: _object(
            {
                **_USAGES,
                "consumer_type": {
                    "type": "string",
                    "pattern": f"{CLASS_NAME}|^all|^unknown$",
                    "minLength": 1,
                    "maxLength": 255,
                },
            },
            ("project_id",),
        ),
    }
)


def _suffixed(suffix: str, *names: str) -> Json:
    return {"patternProperties": {f"^{name}({suffix})?$": _STRING for name in names}}


_LIMIT: Json = {
    "limit": {
        "type": ["integer", "string"],
        "pattern": "^[1-9][0-9]*$",
        "minimum": 1,
        "minLength": 1,
        "maxLength": 128,
    }
}
_GROUPED: Json = {**_LIMIT, "group_policy": {"type": "string", "enum": ["none", "isolate"]}}
_RESOURCES: Json = {"resources": _STRING}
_KINDS = ("resources", "required", "member_of")
LIST_CANDIDATES = VersionedSchema(
    {
        Microversion.CANDIDATES: _object(_RESOURCES, ("resources",)),
        Microversion.LIMITED_CANDIDATES: _object({**_RESOURCES, **_LIMIT}, ("resources",)),
        Microversion.CANDIDATES_BY_TRAIT: _object(
            {**_RESOURCES, **_LIMIT, "required": _STRING}, ("resources",)
        ),
        Microversion.CANDIDATES_BY_AGGREGATE: _object(
            {**_RESOURCES, **_LIMIT, "required": _STRING, "member_of": _STRING}, ("resources",)
        ),
        Microversion.REQUEST_GROUPS: _object(_GROUPED, **_suffixed(SUFFIX, *_KINDS)),
        Microversion.CANDIDATES_IN_ONE_TREE: _object(_GROUPED, **_suffixed(SUFFIX, *_KINDS, "in_tree")),
        Microversion.NAMED_REQUEST_GROUPS: _object(_GROUPED, **_suffixed(SUFFIX_1_33, *_KINDS, "in_tree")),
        Microversion.ROOT_TRAITS: _object(
            {**_GROUPED, "root_required": _STRING}, **_suffixed(SUFFIX_1_33, *_KINDS, "in_tree")
        ),
        Microversion.SAME_SUBTREE: _object(
            {**_GROUPED, "root_required": _STRING, "same_subtree": _STRING},
            **_suffixed(SUFFIX_1_33, *_KINDS, "in_tree"),
        ),
    }
)
