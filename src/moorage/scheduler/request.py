"""Request: all that the scheduler has to know of one server, and the query for Placement that follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moorage.scheduler import narrowing, own_aggregate
from moorage.scheduler.criteria import Criteria, ImageNeeds
from moorage.scheduler.errors import SchedulingError
from moorage.scheduler.groups import Pair, RequestGroup
from moorage.scheduler.narrowing import NarrowedBy, Narrowing
from moorage.scheduler.needs import Needs
from moorage.scheduler.server_group import ServerGroupPolicy, ServerGroupState
from moorage.scheduler.topology_needs import TopologyNeeds
from moorage.topology.errors import BadTopologyError
from moorage.topology.parse import parse_topology
from moorage.topology.pci import PciAlias

MOST_TREES = 32
"""So many certain nodes are asked for, each by a question of its own."""


@dataclass(frozen=True, slots=True)
class TargetNodes:
    """The nodes of a host that was asked for, or the one node that was."""

    each: tuple[str, ...] = ()
    """Those to be asked for one by one; the likeliest to do come first."""
    together: str | None = None
    """One of those that are asked for all at once, by the host's own aggregate; None if none are."""

    def __bool__(self) -> bool:
        return bool(self.each) or self.together is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Criteria):
    """What one server needs of a host."""

    server_uuid: str
    project_id: str = ""
    group_policy: str | None = None
    same_subtree: tuple[tuple[str, ...], ...] = ()
    """Suffixes of groups that one branch of a tree has to serve."""
    apart: tuple[str, ...] = ()
    """Suffixes of groups that different providers have to serve, whatever the policy is."""
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    zone: str | None = None
    targets: TargetNodes | None = None
    machines: frozenset[str] | None = None
    """The nodes by which it gets a machine that a hint names; None if any machine will do."""

    def only_nodes(self) -> frozenset[str] | None:
        """The few nodes that an administrator, affinity or a hint leave; None if they leave very many."""
        group = self.server_group
        together = group is not None and group.policy is ServerGroupPolicy.AFFINITY and group.placed
        several = self.targets is None or self.targets.together is not None
        found = None if several or self.targets is None else frozenset(self.targets.each)
        beside = group.nodes() if group is not None and together else None
        for nodes in (beside, self.same_nodes, self.machines):
            if nodes is not None:
                found = nodes if found is None else found & nodes
        return found

    def excluded_nodes(self) -> frozenset[str]:
        """Nodes that are out of the question, and must not use up the limit."""
        group = self.server_group
        apart = group is not None and group.policy is ServerGroupPolicy.ANTI_AFFINITY
        held = group.nodes() if group is not None and apart else frozenset()
        return self.different_nodes | self.tried_nodes | held

    def queries(self, limit: int) -> list[list[Pair]]:
        """For `GET /allocation_candidates`: small, ordered sets, never the whole cloud.

        A server that has to be on one certain node asks for that tree, since a small set of the whole cloud
        need not have it. Placement takes no list of them, so several are as many questions; but all the
        nodes of a host that may have thousands are one question, for its own aggregate.
        """
        only = self.only_nodes()
        likeliest = () if self.targets is None else self.targets.each
        if only:
            ordered = [uuid for uuid in likeliest if uuid in only]
            ordered += sorted(only.difference(likeliest))
            return self._one_by_one(
                [uuid for uuid in ordered if uuid not in self.tried_nodes] or ordered, limit
            )
        widened = limit + len(self.excluded_nodes())
        if self.targets is None or self.targets.together is None or self.host is None:
            return [self._pairs(widened)]
        own = frozenset({own_aggregate.of_host(self.host)})
        together = self.narrowed(lambda group: group.in_one_of(own))._pairs(widened)
        return [
            together,
            *self._one_by_one([uuid for uuid in likeliest if uuid not in self.tried_nodes], limit),
        ]

    def _one_by_one(self, uuids: Sequence[str], limit: int) -> list[list[Pair]]:
        return [self._within(uuid)._pairs(limit) for uuid in uuids[:MOST_TREES]]

    def _within(self, root_uuid: str) -> Request:
        return self.narrowed(lambda group: group.within(root_uuid))

    def _pairs(self, limit: int) -> list[Pair]:
        pairs = [("limit", str(limit))]
        root = [*sorted(self.root_required), *(f"!{name}" for name in sorted(self.root_forbidden))]
        if root:
            pairs.append(("root_required", ",".join(root)))
        for group in self.groups:
            pairs += group.pairs()
        if self.group_policy is not None:
            pairs.append(("group_policy", self.group_policy))
        pairs += [("same_subtree", ",".join(suffixes)) for suffixes in self.same_subtree]
        return pairs

    def needing(self, groups: Sequence[RequestGroup], same_subtree: Sequence[Sequence[str]]) -> Request:
        """With groups of something else than the flavor; several groups may come from one provider."""
        if not groups:
            return self
        together = (*self.groups, *groups)
        several = sum(bool(group.suffix) for group in together) > 1
        return replace(
            self,
            groups=together,
            group_policy=self.group_policy or ("none" if several else None),
            same_subtree=(*self.same_subtree, *(tuple(suffixes) for suffixes in same_subtree)),
        )

    def put(self, needs: TopologyNeeds) -> Request:
        """With what is asked of where on the host it is put."""
        if not needs.groups and not needs.root_required and not needs.root_forbidden:
            return self
        alone = not any(group.suffix for group in self.groups) and len(needs.groups) == len(needs.apart)
        request = replace(
            self,
            group_policy=self.group_policy or ("isolate" if alone and needs.apart else None),
            apart=needs.apart,
            root_required=self.root_required | needs.root_required,
            root_forbidden=self.root_forbidden | needs.root_forbidden,
        )
        return request.needing(needs.groups, needs.same_subtree)

    def inside(self, aggregates: frozenset[str], by: NarrowedBy, subject: str = "") -> Request:
        """On a node that is in one of these; nothing is to be said if there are none."""
        if not aggregates:
            return self
        request = self.narrowed(lambda group: group.in_one_of(aggregates))
        return request._noting(Narrowing(by, narrowing.inside(aggregates), subject))

    def outside(self, aggregates: frozenset[str], by: NarrowedBy, subject: str = "") -> Request:
        """On a node that is in none of these."""
        if not aggregates:
            return self
        request = self.narrowed(lambda group: group.outside(aggregates))
        return request._noting(Narrowing(by, narrowing.outside(aggregates), subject))

    def _noting(self, note: Narrowing) -> Request:
        return replace(self, narrowings=(*self.narrowings, note))

    def narrowed(self, change: Callable[[RequestGroup], RequestGroup]) -> Request:
        """With a condition on the node as a whole, put on the unsuffixed group, else on all of them."""
        whole = any(not group.suffix for group in self.groups)
        groups = [change(group) if not group.suffix or not whole else group for group in self.groups]
        return replace(self, groups=tuple(groups))


def from_flavor(
    server_uuid: str,
    flavor: Mapping[str, Any],
    image_properties: Mapping[str, str] | None = None,
    *,
    project_id: str = "",
    zone: str | None = None,
    host: str | None = None,
    server_group: ServerGroupState | None = None,
    tried_nodes: frozenset[str] = frozenset(),
    root_on_volume: bool = False,
    aliases: Mapping[str, PciAlias] | None = None,
) -> Request:
    """The request of a server; extra specs and properties that make no sense raise `SchedulingError`."""
    try:
        topology = parse_topology(flavor, image_properties or {})
    except BadTopologyError as error:
        raise SchedulingError(str(error)) from error
    needs = Needs.of(flavor, topology, root_on_volume=root_on_volume)
    request = Request(
        server_uuid=server_uuid,
        groups=needs.groups,
        group_policy=needs.group_policy,
        image=ImageNeeds.of(image_properties or {}),
        project_id=project_id,
        zone=zone,
        host=host,
        server_group=server_group,
        tried_nodes=tried_nodes,
    )
    return request.put(TopologyNeeds.of(topology, aliases or {}))
