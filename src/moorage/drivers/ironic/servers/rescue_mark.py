"""What a node says of a rescue. Pure.

In `instance_info` it is for which work the node was told to be rescued, as long as it is. In `extra` it is
which orders are on their way: each agent notes its own before it gives it, and takes the note back when it
has seen what became of it. What a frozen or dead agent has noted stays: its order may come at any time.
"""

from __future__ import annotations

from typing import NamedTuple

from moorage.drivers.ironic.api.record import RESCUED_STATES, NodeRecord
from moorage.drivers.ironic.servers.mark import Change

_FIELD = "moorage_rescue"
_ORDERS = "moorage_rescue_order_"


class RescueMark(NamedTuple):
    work: str
    after: str | None
    """When the provision state had changed before."""
    ran: bool
    """What the server shall do if the rescue comes to nothing."""

    @property
    def path(self) -> str:
        """The work is a part of it: so what is about another rescue is refused."""
        return f"/instance_info/{_FIELD}/{self.work}"

    def is_taken(self, record: NodeRecord) -> bool:
        """Whether the order was: the provision state has changed since."""
        return self.after != record.provision_updated_at

    def written(self) -> Change:
        said = {self.work: {"after": self.after, "ran": self.ran}}
        return {"op": "add", "path": f"/instance_info/{_FIELD}", "value": said}


def read(record: NodeRecord) -> RescueMark | None:
    found = record.instance_info.get(_FIELD)
    if not isinstance(found, dict) or len(found) != 1:
        return None
    ((work, said),) = found.items()
    if not isinstance(said, dict):
        return None
    return RescueMark(str(work), said.get("after"), bool(said.get("ran", True)))


def order(server_uuid: str, number: str) -> Change:
    """The note of an order; no other has its number."""
    return {"op": "add", "path": order_path(number), "value": {"server": server_uuid}}


def order_path(number: str) -> str:
    return f"/extra/{_ORDERS}{number}"


def order_paths(record: NodeRecord) -> list[str]:
    """The notes of all orders that may still come."""
    return [f"/extra/{name}" for name in record.extra if name.startswith(_ORDERS)]


def is_late(record: NodeRecord) -> bool:
    """Whether the node is rescued by an order that nobody wants any more. One that an operator rescues by
    hand has no note, unless an agent of ours died in the middle of a rescue there."""
    return record.state in RESCUED_STATES and read(record) is None and bool(order_paths(record))
