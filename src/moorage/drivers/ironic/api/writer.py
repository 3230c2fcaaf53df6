"""The calls that change a node. Ironic can't be told who may make them, and any may be delayed: whoever makes
it is stopped right before, and goes on when the node is another server's.

So each is made right after a look at whether we still may, and besides is one of these, as its text says:
*said there* (it says only what the node's record says), *refused there*, or *swept* (the sweep finds what it
did by our mark, and undoes it).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from moorage.drivers.ironic.api.client import BusyError, ChangedError, IronicClient, IronicError
from moorage.drivers.ironic.api.record import ACTIVE, REBUILD, UNRESCUE
from moorage.drivers.ironic.servers import mark as marks
from moorage.drivers.ironic.servers.mark import Change, Mark

Info = dict[str, Any]
_INFO = "/instance_info"


class Writer:
    def __init__(self, client: IronicClient, node_uuid: str, require: Callable[[], None]) -> None:
        """`require` raises if we may not change the node (any more)."""
        self._client = client
        self._node_uuid = node_uuid
        self._require = require

    def associate(self, mark: Mark, info: Info) -> None:
        """The node is the server's from now on, with all that belongs to the deployment.

        Late: refused if the node has another server; swept if it is free, and the server gone.
        """
        self._change(marks.associate(mark.server_uuid), _info(info), marks.last(mark))

    def rewrite(self, mark: Mark, info: Info, seen: Mark | None) -> None:
        """Of the server's node, which has another attempt's deployment written down, or none.

        Late: refused if the node has another server, or yet another attempt's; else as `associate`.
        """
        condition = [] if seen is None else [marks.only_if(seen)]
        self._change(*condition, marks.associate(mark.server_uuid), _info(info), marks.last(mark))

    def deploy(self) -> None:
        """Late: said there; on a node that nothing is written down on, refused or swept."""
        self._order(ACTIVE)

    def prepare_rebuild(self, mark: Mark, info: Info, seen: Mark | None, *, unprotect: bool) -> None:
        """Late: refused, as `rewrite`."""
        condition = [marks.associate(mark.server_uuid)] if seen is None else [marks.only_if(seen)]
        freed = [marks.no_protection()] if unprotect else []
        self._change(*condition, _info(info), *freed)

    def rebuild(self) -> None:
        """Late: refused, since a node in use is protected; while one is being deployed, said there."""
        self._order(REBUILD)

    def restore(self, mark: Mark, info: Info, added: Collection[str], *, protect: bool) -> None:
        """What the node said before a rebuild that was refused.

        Late: refused, unless it is this deployment's still. If a second order of the same rebuild was taken
        meanwhile, the node's record names the image before until it is rebuilt next; its disk does not care.
        """
        entries = [{"op": "add", "path": f"{_INFO}/{name}", "value": said} for name, said in info.items()]
        removals = [{"op": "remove", "path": f"{_INFO}/{name}"} for name in sorted(added)]
        protection = marks.protection(mark) if protect else []
        self._change(marks.only_if(mark), *entries, *removals, *protection)

    def prepare_rescue(self, server_uuid: str, seen: Mark | None, wanted: Change, note: Change) -> None:
        """What the node is rescued for, and that an order to do so is on its way.

        Late: refused, unless it is this deployment's still; then it tells of a rescue that was.
        """
        condition = marks.associate(server_uuid) if seen is None else marks.only_if(seen)
        self._change(condition, wanted, note)

    def rescue(self, password: str) -> None:
        """Late: nobody refuses it. But the node says that such an order may come (`prepare_rescue`), and
        not that it is rescued for anything: so its owner has it unrescued (`late_rescues.py`)."""
        self._make(lambda: self._client.rescue(self._node_uuid, password))

    def unrescue(self) -> None:
        """Late: refused, unless the node is rescued; then it runs from its own disk again, too early."""
        self._order(UNRESCUE)

    def forget(self, *paths: str) -> None:
        """Late: refused, unless they are there; then they go a little early or for the second time."""
        self._change(*({"op": "remove", "path": path} for path in paths))

    def protect(self, mark: Mark) -> None:
        """Late: refused, unless it is this deployment's still."""
        self._change(marks.only_if(mark), *marks.protection(mark))

    def unprotect(self, server_uuid: str, seen: Mark | None) -> None:
        """Late: refused, unless it is this deployment's still."""
        condition = marks.associate(server_uuid) if seen is None else marks.only_if(seen)
        self._change(condition, marks.no_protection())

    def tear_down(self) -> None:
        """Late: refused, since a node in use is protected. One that is just being deployed is torn down; then
        whoever deploys it finds that out, and begins anew."""
        try:
            self._order("deleted")
        except IronicError as error:
            if error.status == 400:  # its state has changed since we looked
                raise BusyError(str(error), error.status) from error
            raise

    def mark(self, mark: Mark) -> None:
        """Late: refused if the node has another server; swept if it is free."""
        self._change(marks.associate(mark.server_uuid), _info(marks.info(mark)), marks.last(mark))

    def release(self, seen: Mark) -> None:
        """What was to be deployed goes with the association.

        Late: refused, unless it is this deployment's still.
        """
        removals = ({"op": "remove", "path": path} for path in ("/instance_uuid", _INFO))
        self._change(marks.only_if(seen), *removals)

    def set_power(self, target: str) -> None:
        """Late: nobody refuses it. Whoever made it finds out, and switches on what it switched off."""
        self._require()
        self._client.set_power(self._node_uuid, target)

    def inject_nmi(self) -> None:
        """Late: nobody refuses it, as a power order; the system of another server may end by it."""
        self._require()
        self._client.inject_nmi(self._node_uuid)

    def switch_on_console(self) -> None:
        """Late: the console of another's server is on, which only who has a token of its own gets to see."""
        self._require()
        self._client.switch_on_console(self._node_uuid)

    def attach(self, port_id: str) -> None:
        """Late: refused if the port is gone; else whoever made it finds out, and detaches it, or the next
        deployment of the node does."""
        self._require()
        self._client.attach(self._node_uuid, port_id)

    def detach(self, port_id: str) -> None:
        """Late: refused, since a port is on one node only. Who has brought it to another server on this very
        node meanwhile has to attach it again: Ironic keeps no record of whose it is."""
        self._require()
        self._client.detach(self._node_uuid, port_id)

    def _order(self, target: str) -> None:
        self._make(lambda: self._client.provision(self._node_uuid, target))

    def _change(self, *changes: Change) -> None:
        self._make(lambda: self._client.change(self._node_uuid, changes))

    def _make(self, call: Callable[[], None]) -> None:
        self._require()
        try:
            call()
        except ChangedError as error:
            raise BusyError(str(error), error.status) from error


def _info(info: Info) -> Change:
    return {"op": "add", "path": _INFO, "value": info}
