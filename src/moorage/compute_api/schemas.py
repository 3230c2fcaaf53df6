"""JSON schemas of all resources but servers, each with the microversion from which it holds."""

from __future__ import annotations

from moorage.compute.flavors.flavors import SORTABLE
from moorage.compute.servers.server_groups import AFFINITY, ANTI_AFFINITY, SOFT_AFFINITY, SOFT_ANTI_AFFINITY
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.schema_types import (
    BOOLEAN,
    HOST,
    LIMIT,
    MAX_INT,
    NAME,
    NON_NEGATIVE,
    PAGE,
    POSITIVE,
    SHORT_TEXT,
    SPEC_KEY,
    STRING,
    Json,
    closed,
    once,
    tolerant,
    wrapped,
)
from moorage.http.schema import Schema, VersionedSchema

# ---------------------------------------------------------------- flavors

_FLAVOR: Json = {
    "name": NAME,
    "id": {
        "type": ["string", "number", "null"],
        "minLength": 1,
        "maxLength": 255,
        "pattern": "^(?! )[a-zA-Z0-9. _-]+(?<! )$",
    },
    "ram": {**POSITIVE, "maximum": MAX_INT},
    "vcpus": {**POSITIVE, "maximum": MAX_INT},
    "disk": {**NON_NEGATIVE, "maximum": MAX_INT},
    "OS-FLV-EXT-DATA:ephemeral": {**NON_NEGATIVE, "maximum": MAX_INT},
    "swap": {**NON_NEGATIVE, "maximum": MAX_INT},
    "rxtx_factor": {
        "type": ["number", "string"],
        "pattern": r"^[0-9]+(\.[0-9]+)?$",
        "exclusiveMinimum": 0,
        "maximum": 3.40282e38,
    },
    "os-flavor-access:is_public": BOOLEAN,
}
_FLAVOR_TEXT: Json = {
    "type": ["string", "null"],
    "maxLength": 65535,
    "pattern": r"^[^\x00-\x08\x0b-\x1f\x7f]*$",
}
_FLAVOR_2_55: Json = {**_FLAVOR, "description": _FLAVOR_TEXT}
_FLAVOR_2_102: Json = {name: one for name, one in _FLAVOR_2_55.items() if name != "rxtx_factor"}
_NEEDED = ("name", "ram", "vcpus", "disk")
CREATE_FLAVOR = VersionedSchema(
    {
        Microversion.FIRST: wrapped("flavor", closed(_FLAVOR, _NEEDED)),
        Microversion.FLAVOR_DESCRIPTIONS: wrapped("flavor", closed(_FLAVOR_2_55, _NEEDED)),
        Microversion.QUERIES_CHECKED: wrapped("flavor", closed(_FLAVOR_2_102, _NEEDED)),
    }
)
UPDATE_FLAVOR = Schema(wrapped("flavor", closed({"description": _FLAVOR_TEXT}, ("description",))))
_LIST_FLAVORS: Json = {
    **PAGE,
    "is_public": STRING,
    "minRam": STRING,
    "minDisk": STRING,
    "sort_key": {"enum": list(SORTABLE)},
    "sort_dir": {"enum": ["asc", "desc"]},
}
_LIST_FLAVORS_2_102: Json = {
    **_LIST_FLAVORS,
    "name": STRING,
    "sort_key": {"enum": [key for key in SORTABLE if key != "rxtx_factor"]},
}
LIST_FLAVORS = VersionedSchema(
    {
        Microversion.FIRST: tolerant(_LIST_FLAVORS),
        Microversion.CONSISTENT_ANSWERS: closed(_LIST_FLAVORS),
        Microversion.QUERIES_CHECKED: closed(_LIST_FLAVORS_2_102),
    }
)

_SPECS: Json = {
    "type": "object",
    "patternProperties": {SPEC_KEY: {"type": ["string", "number"], "maxLength": 255}},
    "additionalProperties": False,
}
CREATE_SPECS = Schema(wrapped("extra_specs", _SPECS))
UPDATE_SPEC = Schema({**_SPECS, "minProperties": 1, "maxProperties": 1})

_TENANT = closed({"tenant": SHORT_TEXT}, ("tenant",))
FLAVOR_ACTION = Schema(
    {
        "type": "object",
        "properties": {"addTenantAccess": _TENANT, "removeTenantAccess": _TENANT},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
)

# ---------------------------------------------------------------- key pairs

_KEY_NAME: Json = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": r"^(?!\s)[a-zA-Z0-9 _-]+(?<!\s)$",
}
_KEY_NAME_2_92: Json = {**_KEY_NAME, "pattern": r"^(?!\s)[a-zA-Z0-9 _@.-]+(?<!\s)$"}
_KEY: Json = {"name": _KEY_NAME, "public_key": STRING}
_KEY_2_2: Json = {**_KEY, "type": {"enum": ["ssh", "x509"]}}
_KEY_2_10: Json = {**_KEY_2_2, "user_id": STRING}
_KEY_2_92: Json = {**_KEY_2_10, "name": _KEY_NAME_2_92}
CREATE_KEYPAIR = VersionedSchema(
    {
        Microversion.FIRST: wrapped("keypair", closed(_KEY, ("name",))),
        Microversion.KEYPAIR_TYPES: wrapped("keypair", closed(_KEY_2_2, ("name",))),
        Microversion.KEYPAIRS_OF_OTHER_USERS: wrapped("keypair", closed(_KEY_2_10, ("name",))),
        Microversion.KEYPAIRS_ONLY_IMPORTED: wrapped("keypair", closed(_KEY_2_92, ("name", "public_key"))),
    }
)
_OF_USER: Json = {"user_id": STRING}
LIST_KEYPAIRS = VersionedSchema(
    {
        Microversion.FIRST: tolerant({}),
        Microversion.KEYPAIRS_OF_OTHER_USERS: tolerant(_OF_USER),
        Microversion.PAGES_OF_KEYPAIRS: tolerant({**_OF_USER, **PAGE}),
        Microversion.CONSISTENT_ANSWERS: closed({**_OF_USER, **PAGE}),
    }
)
ONE_KEYPAIR = VersionedSchema(
    {Microversion.FIRST: tolerant({}), Microversion.CONSISTENT_ANSWERS: closed(_OF_USER)}
)

# ---------------------------------------------------------------- services and hypervisors

_SERVICE: Json = {"host": HOST, "binary": SHORT_TEXT, "disabled_reason": SHORT_TEXT}
UPDATE_SERVICE = VersionedSchema(
    {
        Microversion.FIRST: closed(_SERVICE, ("host", "binary")),
        Microversion.SERVICES_FORCED_DOWN: closed({**_SERVICE, "forced_down": BOOLEAN}, ("host", "binary")),
        Microversion.HOSTS_BY_UUID: closed(
            {
                "status": {"enum": ["enabled", "disabled"]},
                "disabled_reason": SHORT_TEXT,
                "forced_down": BOOLEAN,
            }
        ),
    }
)
_LIST_SERVICES: Json = {"host": STRING, "binary": STRING}
LIST_SERVICES = VersionedSchema(
    {Microversion.FIRST: tolerant(_LIST_SERVICES), Microversion.CONSISTENT_ANSWERS: closed(_LIST_SERVICES)}
)
LIST_HYPERVISORS = VersionedSchema(
    {
        Microversion.FIRST: tolerant({}),
        Microversion.PAGES_OF_HYPERVISORS: tolerant(PAGE),
        Microversion.HOSTS_BY_UUID: once(
            {**PAGE, "hypervisor_hostname_pattern": HOST, "with_servers": BOOLEAN}
        ),
    }
)
SHOW_HYPERVISOR = VersionedSchema(
    {Microversion.FIRST: tolerant({}), Microversion.HOSTS_BY_UUID: once({"with_servers": BOOLEAN})}
)
LIST_HOSTS = Schema(tolerant({"zone": STRING}))
_SWITCH: Json = {"enum": ["enable", "disable", "Enable", "Disable", "ENABLE", "DISABLE"]}
UPDATE_HOST = Schema(closed({"status": _SWITCH, "maintenance_mode": _SWITCH}, minProperties=1))

# ---------------------------------------------------------------- aggregates

_ZONE: Json = {**NAME, "type": ["string", "null"], "pattern": r"^(?!\s)[^\x00-\x1f\x7f:]+(?<!\s)$"}
_SPACED_NAME: Json = {**NAME, "pattern": r"^[^\x00-\x1f\x7f]*[^\x00-\x1f\x7f\s][^\x00-\x1f\x7f]*$"}
_METADATA: Json = {
    "type": "object",
    "patternProperties": {SPEC_KEY: {"type": ["string", "null"], "maxLength": 255}},
    "additionalProperties": False,
}
_MEMBER = closed({"host": HOST}, ("host",))
LIST_AGGREGATES = VersionedSchema(
    {Microversion.FIRST: tolerant({}), Microversion.QUERIES_CHECKED: closed({})}
)
CREATE_AGGREGATE = Schema(wrapped("aggregate", closed({"name": NAME, "availability_zone": _ZONE}, ("name",))))
UPDATE_AGGREGATE = Schema(
    wrapped("aggregate", closed({"name": _SPACED_NAME, "availability_zone": _ZONE}, minProperties=1))
)
AGGREGATE_ACTION = Schema(
    closed(
        {
            "add_host": _MEMBER,
            "remove_host": _MEMBER,
            "set_metadata": closed({"metadata": _METADATA}, ("metadata",)),
        },
        minProperties=1,
        maxProperties=1,
    )
)
CACHE_IMAGES = Schema(
    closed(
        {
            "cache": {
                "type": "array",
                "minItems": 1,
                "items": closed({"id": {"type": "string", "format": "uuid"}}, ("id",)),
            }
        },
        ("cache",),
    )
)

# ---------------------------------------------------------------- server groups

_HARD = [ANTI_AFFINITY, AFFINITY]
_POLICIES = [*_HARD, SOFT_ANTI_AFFINITY, SOFT_AFFINITY]


def _group_before_2_64(policies: list[str]) -> Json:
    one = {"type": "array", "items": {"enum": policies}, "minItems": 1, "maxItems": 1}
    return wrapped("server_group", closed({"name": NAME, "policies": one}, ("name", "policies")))


CREATE_GROUP = VersionedSchema(
    {
        Microversion.FIRST: _group_before_2_64(_HARD),
        Microversion.SOFT_AFFINITY: _group_before_2_64(_POLICIES),
        Microversion.RULES_OF_SERVER_GROUPS: wrapped(
            "server_group",
            closed(
                {
                    "name": NAME,
                    "policy": {"enum": _POLICIES},
                    "rules": closed({"max_server_per_host": POSITIVE}),
                },
                ("name", "policy"),
            ),
        ),
    }
)
_LIST_GROUPS: Json = {"all_projects": STRING, "limit": LIMIT, "offset": LIMIT}
LIST_GROUPS = VersionedSchema(
    {Microversion.FIRST: tolerant(_LIST_GROUPS), Microversion.CONSISTENT_ANSWERS: closed(_LIST_GROUPS)}
)

# ---------------------------------------------------------------- limits and quotas

_QUOTA: Json = {
    "type": ["integer", "string"],
    "pattern": "^(-1|[0-9]{1,10})$",
    "minimum": -1,
    "maximum": MAX_INT,
}
_NETWORK = ("floating_ips", "fixed_ips", "security_groups", "security_group_rules")
_FILES = ("injected_files", "injected_file_content_bytes", "injected_file_path_bytes")
_QUOTAS_2_57: Json = dict.fromkeys(
    ("instances", "cores", "ram", "metadata_items", "key_pairs", "server_groups", "server_group_members"),
    _QUOTA,
)
_QUOTAS_2_36: Json = {**_QUOTAS_2_57, **dict.fromkeys(_FILES, _QUOTA)}
_QUOTAS: Json = {**_QUOTAS_2_36, **dict.fromkeys(_NETWORK, _QUOTA)}


def _quota_set(quotas: Json) -> Json:
    return wrapped("quota_set", closed({**quotas, "force": BOOLEAN}))


UPDATE_QUOTAS = VersionedSchema(
    {
        Microversion.FIRST: _quota_set(_QUOTAS),
        Microversion.NO_PROXIES: _quota_set(_QUOTAS_2_36),
        Microversion.USER_DATA_INSTEAD_OF_FILES: _quota_set(_QUOTAS_2_57),
    }
)
UPDATE_QUOTA_CLASS = VersionedSchema(
    {
        Microversion.FIRST: wrapped("quota_class_set", closed(_QUOTAS)),
        Microversion.QUOTA_CLASSES_LIKE_QUOTAS: wrapped("quota_class_set", closed(_QUOTAS_2_36)),
        Microversion.USER_DATA_INSTEAD_OF_FILES: wrapped("quota_class_set", closed(_QUOTAS_2_57)),
    }
)
QUOTA_USER = VersionedSchema(
    {Microversion.FIRST: tolerant(_OF_USER), Microversion.CONSISTENT_ANSWERS: closed(_OF_USER)}
)
LIMITS = VersionedSchema(
    {
        Microversion.FIRST: tolerant({"tenant_id": STRING}),
        Microversion.CONSISTENT_ANSWERS: closed({"tenant_id": STRING}),
    }
)

# ---------------------------------------------------------------- usage

_SHOW_USAGE: Json = {"start": STRING, "end": STRING}
_LIST_USAGES: Json = {**_SHOW_USAGE, "detailed": STRING}


def _usages(parameters: Json) -> VersionedSchema:
    return VersionedSchema(
        {
            Microversion.FIRST: tolerant(parameters),
            Microversion.PAGES_OF_USAGES: tolerant({**parameters, **PAGE}),
            Microversion.CONSISTENT_ANSWERS: closed({**parameters, **PAGE}),
        }
    )


SHOW_USAGE = _usages(_SHOW_USAGE)
LIST_USAGES = _usages(_LIST_USAGES)
