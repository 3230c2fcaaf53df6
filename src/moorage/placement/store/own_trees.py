"""What an agent may write to: the trees that belong to its user."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from prometheus_client import Counter
from sqlalchemy.engine import Connection

from moorage.core.pauses import Pauses
from moorage.placement.claims import Claim
from moorage.placement.errors import TreeRefusal, TreeRefused
from moorage.placement.store import own_claims, tree_owners
from moorage.placement.store.tree_owners import OwnedTree

LOG = logging.getLogger(__name__)
REFUSED = Counter(
    "moorage_placement_agents_refused_total", "Writes of agents to what is not their own.", ["reason"]
)
_PAUSES = Pauses()
"""Of this process: its log is one, too."""


class TreeOwners(StrEnum):
    """`[placement] tree_owners`."""

    OFF = "off"
    RECORD = "record"
    REQUIRE = "require"


class OwnTrees:
    def __init__(self, user_id: str, *, recording: bool) -> None:
        """`recording` takes what is nobody's, as `TreeOwners.RECORD` says."""
        self._user_id = user_id
        self._recording = recording

    def admit(self, connection: Connection, root_ids: Collection[int]) -> None:
        for refused in self._refusals(connection, root_ids).values():
            raise self.told(refused)

    def admit_providers(self, connection: Connection, uuids: Collection[str]) -> None:
        self.admit(connection, set(tree_owners.roots_of(connection, uuids).values()))

    def admit_claims(self, connection: Connection, claims: Sequence[Claim]) -> None:
        own_claims.check(connection, claims, self)

    def admit_rename(self, name: str) -> None:
        sentence = f"Other hosts may have {name}, too: an agent can't give it another name."
        raise self.told(TreeRefused(TreeRefusal.SHARED_NAME, sentence))

    def refusals(self, connection: Connection, root_ids: Collection[int]) -> Mapping[int, TreeRefused]:
        found = self._refusals(connection, root_ids)
        for refused in found.values():
            self.told(refused)
        return found

    def keep(self, connection: Connection, root_ids: Collection[int]) -> None:
        tree_owners.add(connection, root_ids, self._user_id)

    def owns_any(self, connection: Connection, root_ids: Collection[int]) -> bool:
        found = tree_owners.of_roots(connection, root_ids).values()
        return any(tree.user_id == self._user_id for tree in found)

    def told(self, refused: TreeRefused) -> TreeRefused:
        """Counted, and told in the log, but not so often that it fills up."""
        REFUSED.labels(refused.reason.value).inc()
        silent = _PAUSES.passes((refused.reason, self._user_id))
        if silent is not None:
            more = f" ({silent} more since the last line)" if silent else ""
            LOG.error("refused (%s): agent %r: %s%s", refused.reason, self._user_id, refused, more)
        return refused

    def _refusals(self, connection: Connection, root_ids: Collection[int]) -> dict[int, TreeRefused]:
        found = tree_owners.of_roots(connection, root_ids) if root_ids else {}
        unowned = [root_id for root_id, tree in found.items() if tree.user_id is None]
        if unowned and self._recording:
            self.keep(connection, unowned)  # waits for another agent that is just doing the same
            found |= tree_owners.of_roots(connection, unowned)
        return {root_id: _refused(tree) for root_id, tree in found.items() if tree.user_id != self._user_id}


def _refused(tree: OwnedTree) -> TreeRefused:
    named = f"The tree of provider {tree.name!r} ({tree.uuid})"
    if tree.user_id is None:
        sentence = f"{named} is no agent's: an administrator has to say whose it is."
        return TreeRefused(TreeRefusal.UNOWNED, sentence)
    return TreeRefused(TreeRefusal.NOT_OWN, f"{named} is another agent's: an agent may change its own only.")
