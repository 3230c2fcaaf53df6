"""Which trees a request may write to."""

from __future__ import annotations

from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.placement.service import PlacementService
from moorage.placement.store.own_trees import OwnTrees, TreeOwners
from moorage.placement.store.writable_trees import ANY_TREE, WritableTrees

_UNLIMITED = "admin_or_service_api"


def writable_trees(service: PlacementService, call: Call) -> WritableTrees:
    """Who is nothing but an agent is limited; who may do everything anyway is not."""
    mode = service.settings.tree_owners
    if mode is TreeOwners.OFF or not call.caller.is_agent or call.allows(_UNLIMITED, {}):
        return ANY_TREE
    if call.caller.user_id is None:
        raise HttpError(403, "An agent that is no user has no providers of its own.")
    return OwnTrees(call.caller.user_id, recording=mode is TreeOwners.RECORD)
