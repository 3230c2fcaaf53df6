"""Trees: the providers below a node's own. What they have may move between them; what vanished goes.

A report says what each provider shall have, and Placement refuses to take away what somebody has allocated.
So before a tree of another shape is reported, allocations go where their inventories went, in one transaction
with these. As long as the shape is what it was, nothing is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
from prometheus_client import Counter

from moorage.agent import reshaping
from moorage.agent.journal import Journal
from moorage.agent.reshaping import Inventories, ReshapePlan
from moorage.drivers.contract import Node, child_uuid
from moorage.placement.client.contract import (
    PlacementClient,
    PlacementRefusedError,
    PlacementUnavailableError,
    ProviderInventory,
    ReportedProvider,
    TreeProvider,
)

LOG = logging.getLogger(__name__)
RESHAPED = Counter(
    "moorage_agent_consumers_reshaped_total", "Consumers whose allocations followed an inventory in a tree."
)
_ATTEMPTS = 5
_CONFLICT = 409

TreeShape = dict[str, list[str]]
"""By provider, its resource classes."""


@dataclass(frozen=True)
class OldTree:
    """What is left of an earlier tree of a node."""

    vanished: list[str] = field(default_factory=list)
    """Providers that shall go, children before their parents."""
    kept: list[ReportedProvider] = field(default_factory=list)
    """What has to stay as long as somebody has it: all of it reserved, so that nobody gets more."""


class Trees:
    def __init__(self, placement: PlacementClient, journal: Journal) -> None:
        self._placement = placement
        self._journal = journal
        self._shapes = journal.tree_shapes

    def is_settled(self, node: Node) -> bool:
        """Whether Placement has a tree of this shape, and nothing of an earlier one."""
        return node.children is None or self._shapes.get(node.uuid) == _shape(node)

    def settle(self, node: Node, providers: Sequence[ReportedProvider]) -> OldTree:
        """Move what is allocated, so that these providers can be reported.

        A late call changes nothing: Placement refuses what names an old generation.
        """
        wanted = {provider.uuid: _inventories(provider) for provider in providers}
        for _ in range(_ATTEMPTS):
            found = self._ours(node)
            if not reshaping.lost(found, wanted):
                return _old_tree(found, wanted, ReshapePlan())
            found = self._with_new_ones(node, providers, found)
            consumers = self._placement.consumers([provider.uuid for provider in found])
            plan = reshaping.plan(found, wanted, consumers, node.holdings)
            if self._reshape(found, wanted, plan):
                return _old_tree(found, wanted, plan)
        raise PlacementUnavailableError(f"the tree of node {node.name} is changed by others again and again")

    def finish(self, node: Node, old: OldTree) -> None:
        """The tree was reported: what has vanished goes, unless it is in use."""
        refused = [uuid for uuid in old.vanished if not self._is_deleted(uuid)]
        if old.kept:
            names = ", ".join(
                f"{provider.name} ({', '.join(provider.inventories or ())})" for provider in old.kept
            )
            LOG.warning("servers of node %s still have what it does not offer any more: %s", node.name, names)
        if not (refused or old.kept):
            self._shapes = {**self._shapes, node.uuid: _shape(node)}
            self._journal.tree_shapes = self._shapes

    def forget(self, node_uuid: str) -> None:
        """Placement may not have what we told it: look again."""
        if node_uuid in self._shapes:
            self._shapes = {uuid: shape for uuid, shape in self._shapes.items() if uuid != node_uuid}
            self._journal.tree_shapes = self._shapes

    def _ours(self, node: Node) -> list[TreeProvider]:
        """Others, such as Neutron, have providers of their own below a node."""
        return [
            provider
            for provider in self._placement.tree(node.uuid)
            if provider.uuid in (node.uuid, child_uuid(node.uuid, provider.name))
        ]

    def _with_new_ones(
        self, node: Node, providers: Sequence[ReportedProvider], found: list[TreeProvider]
    ) -> list[TreeProvider]:
        """Nothing can move to a provider that does not exist yet."""
        known = {provider.uuid for provider in found}
        missing = [provider for provider in providers if provider.uuid not in known]
        if not missing:
            return found
        self._placement.report(
            [
                ReportedProvider(one.uuid, one.name, parent_provider_uuid=one.parent_provider_uuid)
                for one in missing
            ]
        )
        return self._ours(node)

    def _reshape(self, found: Sequence[TreeProvider], wanted: Inventories, plan: ReshapePlan) -> bool:
        """Also if nobody holds anything yet: else it would be offered twice for a moment.

        False if somebody changed something since we looked.
        """
        changed = []
        for provider in found:
            stays = plan.kept.get(provider.uuid, set())
            kept = {name: inventory for name, inventory in provider.inventories.items() if name in stays}
            target = {**wanted.get(provider.uuid, {}), **kept}
            if target != provider.inventories:
                changed.append(msgspec.structs.replace(provider, inventories=target))
        if not changed:
            return True
        try:
            self._placement.reshape(changed, plan.claims)
        except PlacementRefusedError as error:
            if error.status != _CONFLICT:
                raise
            LOG.info("a tree was changed while it was looked at, and is looked at again: %s", error.detail)
            return False
        if plan.claims:
            LOG.info("allocations of %d consumers follow the inventories of their node", len(plan.claims))
            RESHAPED.inc(len(plan.claims))
        return True

    def _is_deleted(self, uuid: str) -> bool:
        """A late call is refused if the provider is in use; else the next report makes it again."""
        try:
            self._placement.delete_provider(uuid)
        except PlacementRefusedError as error:
            LOG.warning("provider %s, which its node has no more, stays for now: %s", uuid, error.detail)
            return False
        return True


def _shape(node: Node) -> TreeShape:
    shape = {node.uuid: sorted(node.inventories)}
    for child in node.children or ():
        shape[child_uuid(node.uuid, child.name)] = sorted(child.inventories)
    return shape


def _inventories(provider: ReportedProvider) -> dict[str, ProviderInventory]:
    return msgspec.convert(provider.inventories or {}, dict[str, ProviderInventory])


def _old_tree(found: Sequence[TreeProvider], wanted: Inventories, plan: ReshapePlan) -> OldTree:
    return OldTree(
        vanished=[
            provider.uuid
            for provider in _leaves_first(found)
            if provider.uuid not in wanted and provider.uuid not in plan.kept
        ],
        kept=[_kept(provider, plan.kept[provider.uuid]) for provider in found if provider.uuid in plan.kept],
    )


def _kept(provider: TreeProvider, names: Iterable[str]) -> ReportedProvider:
    return ReportedProvider(
        provider.uuid,
        provider.name,
        inventories={
            name: msgspec.to_builtins(
                msgspec.structs.replace(provider.inventories[name], reserved=provider.inventories[name].total)
            )
            for name in sorted(names)
        },
    )


def _leaves_first(found: Sequence[TreeProvider]) -> list[TreeProvider]:
    parents = {provider.uuid: provider.parent_provider_uuid for provider in found}

    def depth(provider: TreeProvider) -> int:
        above, count = provider.parent_provider_uuid, 0
        while above is not None:
            above, count = parents.get(above), count + 1
        return count

    return sorted(found, key=depth, reverse=True)
