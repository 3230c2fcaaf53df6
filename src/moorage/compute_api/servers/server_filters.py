"""Query strings of server lists: which filters a caller may use at which version, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from moorage.compute.errors import ComputeError, ForbiddenError
from moorage.compute.servers import states
from moorage.compute.servers.listing import EQUAL, MATCHING, SORTABLE, UNSORTED, ServerQuery, ServerSort
from moorage.compute.servers.states import VmState
from moorage.compute_api.endpoint import RULE, is_admin, own_project
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.servers.server_views import ROOT_DEVICE
from moorage.compute_api.service import ComputeService
from moorage.core.microversions import Version
from moorage.core.numbers import whole
from moorage.db import pattern
from moorage.db.pattern import Pattern, PatternError
from moorage.http.call import Call, Query

ALL_FILTERS = f"{RULE}servers:allow_all_filters"

_PAGING = frozenset({"limit", "marker", "sort_key", "sort_dir"})
_JOINED = frozenset(
    {
        *("block_device_mapping", "services", "metadata", "system_metadata", "info_cache"),
        *("security_groups", "pci_devices"),
    }
)
_TAG_FILTERS = frozenset({"tags", "tags-any", "not-tags", "not-tags-any"})
_OPEN: tuple[tuple[Version, frozenset[str]], ...] = (
    (
        Microversion.FIRST,
        frozenset(
            {
                *("reservation_id", "name", "status", "image", "flavor", "ip"),
                *("changes-since", "all_tenants"),
            }
        ),
    ),
    (Microversion.SERVERS_BY_IPV6, frozenset({"ip6"})),
    (Microversion.SERVER_TAGS, _TAG_FILTERS),
    (Microversion.CHANGES_BEFORE, frozenset({"changes-before"})),
    (Microversion.LOCK_REASON, frozenset({"locked"})),
    (
        Microversion.MORE_FILTERS_FOR_USERS,
        frozenset(
            {
                *("availability_zone", "config_drive", "key_name", "created_at", "launched_at"),
                *("terminated_at", "power_state", "task_state", "vm_state", "progress", "user_id"),
            }
        ),
    ),
    (Microversion.HOSTNAMES, frozenset({"hostname"})),
)
"""The filters that everybody may use, by the version that opened them; administrators may use all."""

_ALIASES = {
    "tenant_id": "project_id",
    "display_name": "name",
    "display_description": "description",
    "image_ref": "image",
}
_KNOWN = frozenset(
    {*EQUAL, *MATCHING, *_ALIASES, *_JOINED, *_PAGING}
    | {"kernel_id", "ramdisk_id", "root_device_name", "config_drive", "auto_disk_config", "all_tenants"}
    | {"soft_deleted", "deleted", "status", "changes-since", "ip", "ip6"}
)
_KNOWN_SINCE: tuple[tuple[Version, frozenset[str]], ...] = (
    (Microversion.SERVER_TAGS, _TAG_FILTERS),
    (Microversion.CHANGES_BEFORE, frozenset({"changes-before"})),
    (Microversion.LOCK_REASON, frozenset({"locked"})),
)
_PATTERNS = frozenset(
    {*MATCHING, *_TAG_FILTERS, "display_name", "display_description", "flavor", "ip", "ip6"}
    | {"kernel_id", "ramdisk_id", "root_device_name", "config_drive", "auto_disk_config"}
) - {"launch_index"}
"""Whatever they mean, their values have to be regular expressions."""
_IGNORED_SORT_KEYS = frozenset(
    {
        *("architecture", "cell_name", "cleaned", "default_ephemeral_device", "default_swap_device"),
        *("deleted", "deleted_at", "disable_terminate", "ephemeral_gb", "ephemeral_key_uuid", "id"),
        *("key_data", "launched_on", "memory_mb", "os_type", "reservation_id", "root_gb"),
        *("shutdown_terminate", "user_data", "vcpus", "vm_mode"),
    }
)
_ADMIN_SORT_KEYS = frozenset({"host", "node"})
_TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})
_FALSE = frozenset({"0", "f", "false", "off", "n", "no"})


def read(service: ComputeService, call: Call, all_tenants_rule: str) -> ServerQuery | None:
    """What the query string asks for; None if nothing can fit it."""
    query, version = call.query, call.version
    _require_known(query, version)
    filters = _permitted(call)
    listing = ServerQuery()
    _read_states(listing, query, filters, version, as_admin=is_admin(call))
    if listing.equal.get("vm_state") == []:
        return None
    _read_deleted(listing, filters)
    _read_changes(listing, filters)
    for name, value in filters.items():
        _FILTERS.get(name, _plain)(listing, _ALIASES.get(name, name), value)
    _scope(listing, call, filters, all_tenants_rule)
    listing.order = _order(call)
    listing.limit, listing.marker = page_bounds(query, service.settings.max_limit)
    return listing


def page_bounds(query: Query, most: int) -> tuple[int, str | None]:
    """Of repeated limits the last one counts, but each has to be one."""
    marker, limit = query.get("marker") or None, None
    for text in query.all("limit"):
        limit = whole(text)
        if limit is None:
            raise ComputeError(
                f"Invalid input for query parameters limit. Value: {text}. '{text}' does not match '^[0-9]*$'"
            )
    return most if limit is None else min(limit, most), marker


def known_names(version: Version) -> set[str]:
    return set(_KNOWN).union(*(names for since, names in _KNOWN_SINCE if version >= since))


def _require_known(query: Query, version: Version) -> None:
    known = known_names(version)
    for name, value in query.pairs:
        if name not in known and version >= Microversion.CONSISTENT_ANSWERS and not name.startswith("_"):
            raise ComputeError(f"Additional properties are not allowed ('{name}' was unexpected)")
        if name in _PATTERNS and name in known:
            _require_pattern(name, value)
        if name in ("changes-since", "changes-before") and name in known:
            moment(name, value)


def _require_pattern(name: str, value: str) -> None:
    if not value:
        raise _no_pattern(name, value)
    try:
        pattern.compiled(value)
    except PatternError as error:
        raise _no_pattern(name, value) from error


def _pattern(name: str, value: str) -> Pattern:
    try:
        return pattern.parse(value)
    except PatternError as error:
        raise _no_pattern(name, value) from error


def _no_pattern(name: str, value: str) -> ComputeError:
    return ComputeError(
        f"Invalid input for query parameters {name}. Value: {value}. '{value}' is not a 'regex'"
    )


def _permitted(call: Call) -> dict[str, str]:
    """The filters that count: one that is not known yet, or not for this caller, is as if not there."""
    known = known_names(call.version) - _PAGING
    given = {name: text for name, text in call.query.last.items() if name in known or name.startswith("_")}
    if not call.allows(ALL_FILTERS, own_project(call)):
        open_now = {name for since, names in _OPEN if call.version >= since for name in names}
        given = {name: value for name, value in given.items() if name in open_now}
    for name in given:
        if name in _JOINED or name.startswith("_"):
            raise ComputeError(f"Invalid filter field: {name}.")
    return given


def _read_states(
    listing: ServerQuery, query: Query, filters: dict[str, str], version: Version, *, as_admin: bool
) -> None:
    """A list by `status` is one by the states behind it."""
    if filters.pop("status", None) is not None:
        statuses = query.all("status")
        if (
            not any(status.upper() in states.STATUSES for status in statuses)
            and version >= Microversion.UNKNOWN_STATUS_REFUSED
        ):
            raise ComputeError("Invalid status value")
        vm_states, task_states = states.states_of(statuses)
        filters.pop("vm_state", None)
        listing.equal["vm_state"] = vm_states
        if task_states is not None:
            filters.pop("task_state", None)
            listing.equal["task_state"] = task_states
        if vm_states == ["deleted"]:
            if not as_admin:
                raise ForbiddenError("Only administrators may list deleted instances")
            filters["deleted"] = "true"
    elif filters.pop("vm_state", None) is not None:
        listing.equal["vm_state"] = list(dict.fromkeys(query.all("vm_state")))


def _read_deleted(listing: ServerQuery, filters: dict[str, str]) -> None:
    """Who asks for changes wants to know what was deleted, too."""
    asked = filters.pop("soft_deleted", "").strip().lower() in _TRUE
    listing.soft_deleted = asked or VmState.SOFT_DELETED in listing.equal.get("vm_state", ())
    text = filters.pop("deleted", None)
    if text is not None:
        listing.deleted = text.strip().lower() in _TRUE
    elif "changes-since" in filters or "changes-before" in filters:
        listing.deleted = None


def _read_changes(listing: ServerQuery, filters: dict[str, str]) -> None:
    since, before = filters.pop("changes-since", None), filters.pop("changes-before", None)
    listing.changed_since, listing.changed_before = changes(since, before)


def changes(since: str | None, before: str | None) -> tuple[datetime | None, datetime | None]:
    """The two ends of a time of changes."""
    first = None if since is None else moment("changes-since", since)
    last = None if before is None else moment("changes-before", before)
    if first is not None and last is not None and last < first:
        raise ComputeError("The value of changes-since must be less than or equal to changes-before.")
    return first, last


def moment(name: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ComputeError(
            f"Invalid input for query parameters {name}. Value: {text}. '{text}' is not a 'date-time'"
        ) from error


def _scope(listing: ServerQuery, call: Call, filters: dict[str, str], all_tenants_rule: str) -> None:
    """The caller's own project, unless all are asked for and the caller may see them."""
    if _all_tenants(filters):
        call.authorize(all_tenants_rule, own_project(call))
        return
    if call.caller.project_id is not None:
        own = {"project_id": [call.caller.project_id]}
    else:
        own = {"user_id": [call.caller.user_id or ""]}
    listing.equal |= own
    listing.marker_among = {} if is_admin(call) else own


def _all_tenants(filters: dict[str, str]) -> bool:
    text = filters.get("all_tenants")
    if text is None:
        return False
    if text.lower() in _TRUE or text == "":
        return True
    if text.lower() in _FALSE:
        return False
    raise ComputeError(f"Unrecognized value '{text}', acceptable values are: '0', '1', 'false', 'true'")


def _order(call: Call) -> list[ServerSort]:
    keys, directions = call.query.all("sort_key") or ["created_at"], call.query.all("sort_dir") or ["desc"]
    for direction in directions:
        if direction not in ("asc", "desc"):
            raise ComputeError(f"Unknown sort direction, must be one of: asc, desc. Value: {direction}")
    if len(directions) > len(keys):
        raise ComputeError("Invalid input for query parameters: there are more of sort_dir than of sort_key")
    ignored = (
        _IGNORED_SORT_KEYS if call.version >= Microversion.LOCK_REASON else _IGNORED_SORT_KEYS | {"locked"}
    )
    order: list[ServerSort] = []
    for at, key in enumerate(keys):
        descending = directions[min(at, len(directions) - 1)] == "desc"
        if (key in ignored and call.version < Microversion.CONSISTENT_ANSWERS) or key in UNSORTED:
            continue
        if key not in SORTABLE:
            raise ComputeError(
                f"Invalid input for query parameters sort_key. Value: {key}. '{key}' is not a sort key"
            )
        if key in _ADMIN_SORT_KEYS and not is_admin(call):
            raise ForbiddenError(f"Only administrators can sort servers by {key}")
        if key not in (one.key for one in order):  # what is said of it later has no say any more
            order.append(ServerSort(key, descending))
    return order or [ServerSort("created_at", True)]


# ---------------------------------------------------------------- single filters


def _plain(listing: ServerQuery, name: str, value: str) -> None:
    """Filters that name a column; those that the API lets pass but nothing has are left alone."""
    if name in EQUAL:
        listing.equal.setdefault(name, [value])
    elif name in MATCHING:
        listing.matching[name] = _pattern(name, value)


def _address(listing: ServerQuery, name: str, value: str) -> None:
    listing.address = _pattern(name, value)


def _address_v6(listing: ServerQuery, name: str, value: str) -> None:
    listing.address_v6 = _pattern(name, value)


def _locked(listing: ServerQuery, _name: str, value: str) -> None:
    if value.lower() not in _TRUE | _FALSE:
        raise ComputeError(f"Unrecognized value '{value}', acceptable values are: '0', '1', 'false', 'true'")
    listing.locked = value.lower() in _TRUE


def _config_drive(listing: ServerQuery, _name: str, value: str) -> None:
    if value.lower() in _TRUE | _FALSE:
        listing.config_drive = value.lower() in _TRUE
    else:
        listing.equal["uuid"] = []


def _auto_disk_config(listing: ServerQuery, _name: str, value: str) -> None:
    if value.lower() in _TRUE | _FALSE:
        listing.auto_disk_config = value.lower() in _TRUE
    else:
        listing.equal["uuid"] = []


def _same_for_all(shown: str) -> Callable[[ServerQuery, str, str], None]:
    """What is shown of every server alike is that of all of them, or of none."""

    def filter_by(listing: ServerQuery, _name: str, value: str) -> None:
        if not pattern.search(value, shown):
            listing.equal["uuid"] = []

    return filter_by


def _ignored(_listing: ServerQuery, _name: str, _value: str) -> None:
    """The API takes it, and has no such column."""


def _tags(listing: ServerQuery, name: str, value: str) -> None:
    setattr(listing, name.replace("-", "_"), list(dict.fromkeys(value.split(","))))


_FILTERS: dict[str, Callable[[ServerQuery, str, str], None]] = {
    "ip": _address,
    "ip6": _address_v6,
    "locked": _locked,
    "config_drive": _config_drive,
    "auto_disk_config": _auto_disk_config,
    "kernel_id": _same_for_all(""),
    "ramdisk_id": _same_for_all(""),
    "root_device_name": _same_for_all(ROOT_DEVICE),
    "description": _ignored,
    **dict.fromkeys(_TAG_FILTERS, _tags),
}
