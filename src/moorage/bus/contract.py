"""What conductors and agents say to each other, whatever carries it; and what is asked of agents.

Nobody waits for the result of a task: a conductor hands it to an agent, and the agent reports when there is
one. Both may be lost or come twice; `attempt` fences what is stale. A question changes nothing, and whoever
asks waits for the answer, for a bounded time.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Protocol

import msgspec

SET_STATUS = "set_status"
"""The kind of a task that is about the host, not about a server: payload `disabled`, a boolean."""

SAY_AGAIN = "say_again"
"""The kind of a task that asks a host to say everything again, as after a start: it was forgotten here."""

SET_RATIOS = "set_ratios"
"""Likewise: payload `ratios`, the allocation ratios by resource class that the host's aggregates say; those
of other classes are the agent's own matter. Only agents that tell their ratios in a heartbeat know this."""

SET_PEERS = "set_peers"
"""Likewise: payload `peers`, the live hosts, this one included, that share the nodes of its partition."""

OWN = "own"
"""Likewise, about nodes that hosts share: payload `granted` and `revoked`, epochs by node; with `all`, what
is granted is all that the host owns. What is older than the newest epoch that a host knows is no news.
`traits`, by node, are those that earlier owners told Placement of, and that the host may not know of. `lease`
is the number of seconds after a heartbeat for which the host counts as alive, and `answer` the number of
the question that this answers."""

PERMIT = "permit"
"""Likewise, the answer to a `StartQuestion`: payload `question`, its number; `seconds`, how long a host that
falls silent counts as alive; `granted` and `refused`, the servers. What is in neither is not known yet."""

SWEEP = "sweep"
"""Likewise: payload `held`, those machines that the host asked about and that are held for servers which are
not there."""

EXPIRE_IMAGES = "expire_images"
"""Likewise: what its driver's image cache has and need not keep is removed, as the driver does by itself."""

AVOID = "avoid"
"""Likewise: payload `quarantined`, machines to which no server shall come, and `failures`, how often machines
failed lately. Only hosts that tell their policy of quarantine know this."""

DISCARD = "discard"
"""The kind of a task that destroys a server that should not be on this host; its result is not reported.

With payload `holding`, the server is deleted, and nothing of the network is left to it, either."""

RELEASE_PORTS = "release_ports"
"""The kind of a task that releases a deleted server's ports: payload `holding`. Any agent that has a
network may be asked, whatever host the server was on."""

UNDO_RESIZE = "undo_resize"
"""The kind of a task that makes a server what it was before it got another flavor on its node; like one that
destroys a server, it ends what is at work there."""

ABORT = "abort_live_migration"
HURRY = "hurry_live_migration"
"""The kinds of tasks about a live migration that is at work on this host: they don't wait for its end, have
no result, and are forgotten if none is at work."""


ERA = "era"
NEWEST_OPERATION = "newest_operation"
"""Among the facts of a heartbeat: the latest era of the database that the agent has heard of, and the newest
operation of it. Agents that are older don't say."""

LAST = "last"
"""In the payload of a `destroy`: the server is deleted, and no other host that lives has anything of it."""

NO_ROOM = "no_room"
"""Among the facts of a result that failed: nothing was left for the server, which is no fault of the host."""


class BusError(Exception):
    """The bus could not take a message within its time."""


class NoAnswerError(BusError):
    """An agent could not be asked, or did not answer in time."""


class NotNowError(Exception):
    """A receiver can't deal with messages as long as something that it needs is away; they come again."""


UNCHANGED = "unchanged"
"""Among the facts of a result that failed: the server is in every way what it was."""
BROKEN = "broken"
"""Likewise: the server is not what it was any more."""

ADMIN_PASSWORD = "admin_password"
"""Among the secrets of a task: what the administrator of a server logs in with."""


class Task(msgspec.Struct, frozen=True):
    """Work for one agent on one server."""

    operation_id: int
    server_uuid: str
    kind: str
    """A method of the driver, as `spawn` or `take_over`; or one of the kinds above."""
    attempt: int
    """Grows with every host that is tried; an agent that has seen a higher one ignores this."""
    node_uuid: str
    payload: dict[str, Any] = {}
    permit: bool = False
    """Whether who sent it answers a `StartQuestion` about it. Conductors that are older don't."""
    secrets: dict[str, str] = {}
    """What nobody may keep longer than the task lasts: it is in no journal and in no log."""
    request_ids: str = ""
    """Of the request that it goes back to, for the log; likewise the project. Older conductors don't tell."""
    project_id: str = ""
    era: int = 0
    """Of the database that it follows from: an agent that has heard of a later one ignores this, and in a
    later one no number of an earlier one counts. 0 from conductors that are older: this one, then."""
    ticket: str = ""
    """That this host was given it, to be shown with the result. Older conductors give none."""

    def __repr__(self) -> str:
        """Without what it brings along."""
        return f"Task({self.kind} of {self.server_uuid}, {self.operation_id}-{self.attempt})"


class Result(msgspec.Struct, frozen=True):
    """What became of a task."""

    operation_id: int
    server_uuid: str
    attempt: int
    ok: bool
    error: str = ""
    retry_elsewhere: bool = False
    """The host could not do it, but another one may."""
    facts: dict[str, Any] = {}
    """What the driver found out: power state, and so on."""
    era: int = 0
    """As the task's; 0 from agents that are older."""
    ticket: str = ""
    """The task's: only who was asked may answer."""


class NodeFacts(msgspec.Struct, frozen=True):
    """One node of a host, as the hypervisor list shows it."""

    uuid: str
    name: str
    hypervisor_type: str
    facts: dict[str, Any] = {}


class ObservedServer(msgspec.Struct, frozen=True):
    """What an agent saw of a server."""

    power: int
    """As the API numbers it; 0 if the server is not here any more."""
    operation_id: int = 0
    """The newest operation that the agent had heard of when it looked: after a newer one, this is no news."""
    attempt: int = 0
    """The newest attempt of it; 0 from agents that don't say."""


class Bid(msgspec.Struct, frozen=True):
    """What a host says of nodes that any of its peers could own: conductors decide who does."""

    wanted: list[NodeFacts] = []
    """Nodes that it proposes to own, and own ones of which there is something new."""
    released: dict[str, int] = {}
    """Own nodes that it gives up, with the epochs at which it had them."""
    heirs: dict[str, str] = {}
    """Of these, the peers that should have them."""
    gone: list[str] = []
    """Own nodes that there are no more."""
    withdrawn: dict[str, int] = {}
    """Own nodes that shall be none any more, unless a server is there or on its way; with their epochs."""
    everything: bool = False
    """It wants to know all that it owns."""
    question: int = 0
    """The number of this question, which the answer repeats."""


class OwnershipDigest(msgspec.Struct, frozen=True):
    """What a host believes to own, in brief: enough to see that something else is written down."""

    nodes: int
    epochs: int
    """Their sum: it differs after every change of owner."""


class StartRequest(msgspec.Struct, frozen=True):
    """A task that is about to make a server run."""

    server_uuid: str
    operation_id: int
    attempt: int


class StartQuestion(msgspec.Struct, frozen=True):
    """Are these still wanted of this host? Asked right before, since a task may have waited for long."""

    number: int
    starts: list[StartRequest]


class HeldMachine(msgspec.Struct, frozen=True):
    """A machine that is held for a server: should it be?"""

    server_uuid: str
    node_uuid: str


class ReportedFailure(msgspec.Struct, frozen=True):
    """Something failed on a machine, as `drivers/machine_failures.py` says."""

    uuid: str
    machine_uuid: str
    step: str
    reason: str
    server_uuid: str = ""


class Heartbeat(msgspec.Struct, frozen=True):
    """What an agent says every few seconds; some fields keep their first name on the wire."""

    host: str
    version: int
    facts: dict[str, Any] = {}
    nodes: list[NodeFacts] | None = None
    """All nodes of the host when they changed since the last one, else None."""
    observed: dict[str, ObservedServer] = msgspec.field(default_factory=dict, name="sightings")
    """Servers whose power state changed since the last one, by UUID; all of them after a start. A server
    that should not be here is a reason to send `discard`."""
    bid: Bid | None = None
    """None from a host whose nodes can't be another's, or that has nothing to say."""
    digest: OwnershipDigest | None = msgspec.field(default=None, name="tally")
    """From a host that shares nodes and has nothing to bid, once after each look at them."""
    progress: dict[str, int] = {}
    """How far long work on servers has come, in percent, by UUID: it needs patience, not another host."""
    held_machines: list[HeldMachine] = msgspec.field(default_factory=list, name="doubts")
    """Machines of the host that have been held for a while: those that nobody needs are to be swept."""
    failures: list[ReportedFailure] = []
    """What failed on machines since the last one; told again, it is the same."""
    mended: list[str] = []
    """Machines in quarantine that an operator has in their hands."""
    lost: list[str] = []
    """Servers of pools whose machines are certainly gone; of others, the bid says that the node is gone."""
    starts: StartQuestion | None = None
    """From a host whose servers could be started elsewhere while it is silent."""


class QuestionKind(StrEnum):
    """What agents can be asked for within a request: reads, so that nothing has to be fenced; and what must
    not be written down on its way."""

    CONSOLE_LOG = "console_log"
    """Payload `lines`, or None for all of it; the answer's facts say `output`."""
    DIAGNOSTICS = "diagnostics"
    """The facts are those of `Diagnosable.diagnostics`."""
    CONSOLE = "console"
    """Payload `type`; the facts are those of a `ConsoleAddress`."""
    TOPOLOGY = "topology"
    """The facts are those of a `ServerTopology`."""
    HOLDINGS = "holdings"
    """Of the host, not of one server: payload `only`, servers, or none for all. The facts say `servers`, with
    their power states, and `machines`, those that are held for servers."""
    DESCRIPTION = "description"
    """What its driver remembers of a server. The facts say its `power_state` and `spec`, that of a
    `ServerSpec`, or None if the driver remembers nothing."""
    IMAGE_CACHE = "image_cache"
    """Likewise of the host. The facts say `images`, those that its driver keeps for servers to come."""
    CHANGE_PASSWORD = "change_password"
    """Payload `password`. Late, it sets what its user wanted, and was told to be uncertain."""


class Question(msgspec.Struct, frozen=True):
    """Something about one server that only its agent knows."""

    server_uuid: str
    node_uuid: str
    kind: str
    """A `QuestionKind`; an agent may be older than the one that asks, and not know it."""
    payload: dict[str, Any] = {}


class Refusal(StrEnum):
    """Why an agent has no answer."""

    UNSUPPORTED = "unsupported"
    """Its driver has no part for it, or it does not know the question: that will not change."""
    NOT_RUNNING = "not_running"
    """The server would have to run; the facts say its `power_state`."""
    ELSEWHERE = "elsewhere"
    """The server's node is another host's by now."""
    BUSY = "busy"
    """Too many questions are at work already."""
    FAILED = "failed"


class Answer(msgspec.Struct, frozen=True):
    facts: dict[str, Any] = {}
    refusal: Refusal | None = None
    error: str = ""
    """A sentence, if it is refused."""


class AskingSide(Protocol):
    """What somebody uses who asks agents."""

    def ask(self, host: str, question: Question, timeout: float) -> Answer:
        """NoAnswerError if there is none after `timeout` seconds, or can't be one."""

    def close(self) -> None: ...


class ConductorSide(Protocol):
    """What a conductor uses."""

    def cast(self, host: str, tasks: list[Task]) -> None:
        """Hand tasks to the agent of `host`; BusError if the bus can't take them."""

    def receive(
        self, on_results: Callable[[list[Result]], None], on_heartbeat: Callable[[Heartbeat], None]
    ) -> None:
        """Call these, from threads of the bus, for what agents say."""

    def close(self) -> None: ...


class AgentSide(Protocol):
    """What the agent of one host uses."""

    def report(self, results: list[Result]) -> None:
        """BusError if the bus can't take them; then they are the caller's to keep."""

    def beat(self, heartbeat: Heartbeat) -> None: ...

    def receive(self, host: str, on_tasks: Callable[[list[Task]], None]) -> None: ...

    def answer(self, host: str, on_question: Callable[[Question], Answer]) -> None:
        """Call this, from threads of the bus, for what the agent of `host` is asked."""

    def close(self) -> None: ...
