"""The mark that a node carries with all that belongs to one deployment of one server. Pure.

It is written together with the rest of `instance_info`, and is part of a path in there: so a change can say
"only if it is still this deployment's", and Ironic refuses it otherwise. A second, shorter one in `extra`
outlives the deployment: it tells later whose call it may have been that was delayed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from moorage.drivers.contract import ServerSpec
from moorage.drivers.ironic.api.record import NodeRecord

FIELD = "moorage"
_PATH = f"/instance_info/{FIELD}"
_REASON = "in use by Moorage: server"

Change = dict[str, Any]


class Mark(NamedTuple):
    server_uuid: str
    work: str
    """Names operation and attempt."""
    home: str
    """The node of the cloud that the server is on: this one, or the pool through which it was reserved."""

    @property
    def key(self) -> str:
        """Ironic takes only letters, digits, `_` and `-` in paths."""
        return f"{self.server_uuid}_{self.work}"


def of(spec: ServerSpec, home: str) -> Mark:
    return Mark(spec.uuid, spec.work, home)


def read(record: NodeRecord) -> Mark | None:
    """The mark of the deployment that is written down on a node; None if it has none of ours."""
    marks = record.instance_info.get(FIELD)
    if not isinstance(marks, dict) or len(marks) != 1:
        return None
    ((key, said),) = marks.items()
    if not isinstance(said, dict):
        return None
    found = Mark(str(said.get("server")), str(said.get("work")), str(said.get("home")))
    return found if found.key == key else None


def read_last(record: NodeRecord) -> Mark | None:
    """The mark of the last server that we put on a node, whether or not it is gone."""
    said = record.extra.get(FIELD)
    if not isinstance(said, dict) or not said.get("server"):
        return None
    return Mark(str(said["server"]), "", str(said.get("home")))


def info(mark: Mark) -> dict[str, Any]:
    """What `instance_info` has of it."""
    return {FIELD: {mark.key: _said(mark)}}


def last(mark: Mark) -> Change:
    said = {"server": mark.server_uuid, "home": mark.home}
    return {"op": "add", "path": f"/extra/{FIELD}", "value": said}


def only_if(mark: Mark) -> Change:
    """Changes nothing, but has Ironic refuse the whole if the node is not this deployment's any more."""
    return {"op": "replace", "path": f"{_PATH}/{mark.key}", "value": _said(mark)}


def associate(server_uuid: str) -> Change:
    """Has Ironic refuse the whole if the node is another server's."""
    return {"op": "add", "path": "/instance_uuid", "value": server_uuid}


def protection(mark: Mark) -> list[Change]:
    """As long as a node is protected, Ironic refuses to tear it down or to rebuild it."""
    reason = f"{_REASON} {mark.server_uuid}"
    return [
        {"op": "add", "path": "/protected", "value": True},
        {"op": "add", "path": "/protected_reason", "value": reason},
    ]


def no_protection() -> Change:
    return {"op": "add", "path": "/protected", "value": False}


def is_protected_by_us(record: NodeRecord) -> bool:
    """What an operator has protected stays so."""
    return record.protected and (record.protected_reason or "").startswith(_REASON)


def _said(mark: Mark) -> dict[str, Any]:
    return {"server": mark.server_uuid, "work": mark.work, "home": mark.home}
