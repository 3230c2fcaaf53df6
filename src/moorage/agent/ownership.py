"""Which of the nodes that several hosts share are this one's: hashing proposes, conductors decide.

A node becomes ours when a conductor says so, and stays so until a conductor says otherwise or we give it up.
Every change of owner has an epoch, so that an old message can't bring back what a newer one has settled.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from moorage.agent.lease import OwnershipLease
from moorage.bus.contract import Bid, NodeFacts, OwnershipDigest
from moorage.drivers import capabilities, parts
from moorage.drivers.contract import Node
from moorage.drivers.shared_nodes import SharedNode, SharedNodes

LOG = logging.getLogger(__name__)

_MOST_TOGETHER = 2_000
"""Nodes in one message."""
_MOST_QUESTIONS = 200
"""Nodes that were not listed, of which one pass asks what became of them."""


class OwnershipUpdate(msgspec.Struct, frozen=True):
    """What a conductor says about owners."""

    granted: dict[str, int] = {}
    revoked: dict[str, int] = {}
    all: bool = False
    traits: dict[str, list[str]] = {}
    """What earlier owners of nodes told Placement of, and we may have to take away again."""
    lease: float = 0.0
    """Seconds for which a host counts as alive; 0 from a conductor that does not say."""
    answer: int = 0
    """The number of the question that this answers; 0 for none."""


class _Basis(NamedTuple):
    """What a proposal follows from."""

    eligible: Mapping[str, SharedNode]
    members: tuple[str, ...]
    revision: int

    def is_same(self, other: _Basis | None) -> bool:
        """The same nodes if it is the same object: to compare 100,000 of them is what this is to save."""
        return other is not None and self.eligible is other.eligible and self[1:] == other[1:]


class Ownership:
    def __init__(self, host: str, driver: SharedNodes, *, failover_servers: bool = True) -> None:
        self._host = host
        self.driver = driver
        self._abilities = parts.of(driver)
        self._policy = {"failover_servers": failover_servers}
        self._lock = threading.Lock()
        self.members: tuple[str, ...] = ()
        """The live hosts that share the nodes; empty until we are told."""
        self._epochs: dict[str, int] = {}
        """Of the nodes that are ours."""
        self._newest: dict[str, int] = {}
        """The last epoch that we heard of, by node."""
        self._told: dict[str, NodeFacts] = {}
        """What conductors know of our nodes."""
        self._wanted: dict[str, NodeFacts] = {}
        self._released: dict[str, int] = {}
        self._heirs: dict[str, str] = {}
        self._withdrawn: dict[str, int] = {}
        self._gone: set[str] = set()
        self._vanished: set[str] = set()
        """Own nodes that there are no more, whether or not a conductor has heard of it."""
        self._everything = True
        self._known = False
        """Whether we were ever told what we own."""
        self._listed = False
        """Whether the driver has looked at what we serve."""
        self._digest_due = False
        self._revision = 0
        """Grows when what we own, or what conductors know of it, becomes something else."""
        self._lease = OwnershipLease(driver.extend_lease)
        self._at_rest: _Basis | None = None
        """From what it followed that we have all that we want; None if we don't."""

    def meet(self, members: list[str]) -> bool:
        """These hosts share the nodes from now on; whether that is news."""
        met = tuple(sorted({*members, self._host}))
        if met == self.members:
            return False
        LOG.info("the nodes are shared by %s", ", ".join(met))
        self.members = met
        return True

    def part(self) -> None:
        """We serve other nodes from now on: nothing is proposed before we know with whom we share those."""
        self.members = ()
        self._listed = False

    def facts(self) -> dict[str, Any]:
        """What a heartbeat says of us, so that conductors find our peers."""
        return {"partition": self.driver.terms(), "peers": list(self.members), **self._policy}

    def look(self) -> list[str]:
        """See what nodes there are, what we want and what we give up; answers with own ones that are gone."""
        self.driver.look()
        self._listed = True
        gone = self.propose()
        self._digest_due = True
        return gone

    def propose(self) -> list[str]:
        """The same for what was seen last: when a peer dies, nobody waits for a look at 100,000 nodes."""
        if not self.members or not self._listed:
            return []
        basis = _Basis(self.driver.eligible(), self.members, self._revision)
        with self._lock:
            owned = dict(self._epochs)
        strangers = {
            uuid: self.driver.look_up_missing(uuid) for uuid in self._not_listed(owned, basis.eligible)
        }
        gone = [uuid for uuid, shared in strangers.items() if shared is None]
        there = {uuid: shared for uuid, shared in strangers.items() if shared is not None}
        leaving = [uuid for uuid, shared in there.items() if shared.free and not shared.withdrawn]
        with self._lock:  # ours until a conductor says otherwise: it knows whether a server is on its way
            self._withdrawn = {uuid: owned[uuid] for uuid, shared in there.items() if shared.withdrawn}
        if gone or leaving or not basis.is_same(self._at_rest):
            self._change(basis, gone, leaving)
        return gone

    def _change(self, basis: _Basis, gone: list[str], leaving: list[str]) -> None:
        eligible = basis.eligible
        mine = self.driver.share(self._host, basis.members) & eligible.keys()
        with self._lock:
            others = (self._epochs.keys() & eligible.keys()) - mine
            passed_on = {uuid for uuid in others if eligible[uuid].free}
            leaving = [*leaving, *passed_on]
            self._wanted = self._wishes(mine, eligible)
            for uuid in self._epochs.keys() & gone:
                self._give_up(uuid)
            for uuid in self._epochs.keys() & leaving:
                self._released[uuid] = self._give_up(uuid)
            self._heirs |= self._heirs_of(passed_on, basis.members)
            self._gone |= set(gone)
            self._vanished = (self._vanished | set(gone)) - eligible.keys()
            self._keep()
            self._at_rest = None if self._wanted else basis

    def about_to_beat(self) -> None:
        """If our last heartbeat is too old, others may own our nodes by now: then we have to be told."""
        if self._lease.about_to_beat():
            self.ask_for_everything()

    def has_beaten(self) -> None:
        """The heartbeat was taken."""
        self._lease.has_beaten()

    def bid(self) -> Bid | None:
        """What is to be said now; there may be more to say, see `has_more`."""
        if not self.members:
            return None
        with self._lock:
            question = self._lease.ask() if self._everything else 0
            first = list(islice(self._wanted, _MOST_TOGETHER))
            bid = Bid(
                wanted=[self._wanted.pop(uuid) for uuid in first],
                released=dict(self._released),
                heirs=dict(self._heirs),
                gone=sorted(self._gone),
                withdrawn=dict(self._withdrawn),
                everything=self._everything,
                question=question,
            )
            self._released.clear()
            self._heirs.clear()
            self._withdrawn.clear()
            self._gone.clear()
            self._everything = False
            self._told |= {facts.uuid: facts for facts in bid.wanted}
        return bid if bid != Bid() else None

    def digest(self) -> OwnershipDigest | None:
        """Once after each look, so that an update that got lost, or was never sent, is found out."""
        with self._lock:
            if not (self._digest_due and self._known):
                return None
            self._digest_due = False
            return OwnershipDigest(len(self._epochs), sum(self._epochs.values()))

    @property
    def has_more(self) -> bool:
        return bool(self._wanted)

    def ask_for_everything(self) -> None:
        """What we said may be lost, or what we know may be wrong: have it all said again."""
        with self._lock:
            self._everything = True
            self._told.clear()
            self._revision += 1

    def learn(self, update: OwnershipUpdate) -> None:
        with self._lock:
            if update.all and not self._lease.is_news(update.answer):
                return
            before = set(self._epochs)
            fresh = {
                uuid: epoch for uuid, epoch in update.granted.items() if epoch >= self._newest.get(uuid, 0)
            }
            if update.all:
                # What we gave up and own all the same: no conductor has heard of it.
                unheard = {uuid: epoch for uuid, epoch in update.granted.items() if uuid not in fresh}
                self._gone |= unheard.keys() & self._vanished
                self._released |= {uuid: unheard[uuid] for uuid in unheard.keys() - self._vanished}
                self._epochs = {}
            self._epochs |= fresh
            self._newest |= fresh
            for uuid, epoch in update.revoked.items():
                if epoch > self._newest.get(uuid, 0):
                    self._newest[uuid] = epoch
                    self._epochs.pop(uuid, None)
            lost, won = before - self._epochs.keys(), self._epochs.keys() - before
            self._revision += 1
            for uuid in lost:
                self._told.pop(uuid, None)
            # A conductor that did not know yet what another one had granted would look just like this.
            self._everything |= update.all and not lost <= update.revoked.keys()
            self._known |= update.all
            self._keep()
            self._lease.learn(update.lease, update.answer if update.all else 0)
        if lost or won:
            LOG.info("host %s owns %d nodes more, %d less", self._host, len(won), len(lost))

    def _keep(self) -> None:
        if self._known:
            self.driver.keep(set(self._epochs))

    def _not_listed(self, owned: Mapping[str, int], eligible: Mapping[str, SharedNode]) -> list[str]:
        """Others each time, if there are many: some of them may stay for ever, because they carry servers."""
        found = list(owned.keys() - eligible.keys())
        return random.sample(found, min(len(found), _MOST_QUESTIONS))

    def _wishes(self, mine: set[str], eligible: Mapping[str, SharedNode]) -> dict[str, NodeFacts]:
        """Nodes to get, and own ones that conductors know otherwise."""
        interesting = mine | (self._epochs.keys() & eligible.keys())
        said = {uuid: self._facts(eligible[uuid].node) for uuid in interesting}
        return {
            uuid: facts
            for uuid, facts in said.items()
            if uuid not in self._epochs or self._told.get(uuid) != facts
        }

    def _facts(self, node: Node) -> NodeFacts:
        return NodeFacts(
            node.uuid, node.name, node.hypervisor_type, capabilities.facts(self._abilities, node)
        )

    def _heirs_of(self, node_uuids: set[str], members: Sequence[str]) -> dict[str, str]:
        """Those that bid for them, or will: named by us, they need not bid again for what is nobody's."""
        if not node_uuids:
            return {}
        peers = [member for member in members if member != self._host]
        return {uuid: peer for peer in peers for uuid in self.driver.share(peer, members) & node_uuids}

    def _give_up(self, uuid: str) -> int:
        """The epoch at which it was ours; whoever grants it anew has to name a later one."""
        self._revision += 1
        epoch = self._epochs.pop(uuid)
        self._newest[uuid] = epoch + 1
        self._told.pop(uuid, None)
        self._wanted.pop(uuid, None)
        return epoch
