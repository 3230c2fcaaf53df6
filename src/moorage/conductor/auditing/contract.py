"""What a check is.

It looks at everything in bounded portions, as cheaply as it can: what seems odd is a suspect, and may well be
what is merely under way. Then it judges each suspect by itself, in an order of questions that no work under
way can mislead. The same judgement is made again after the grace period, and right before a repair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from moorage.bus.contract import AskingSide, Task
from moorage.bus.host_queues import HostQueues
from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.db.database import Database
from moorage.deciding.hosts import Hosts
from moorage.network.contract import Network
from moorage.placement.client.contract import PlacementClient
from moorage.scheduler.settings import SchedulerSettings


@dataclass(frozen=True)
class AuditTools:
    """What checks work with."""

    database: Database
    placement: PlacementClient
    network: Network
    hosts: Hosts
    agents: AskingSide
    cast: Callable[[str, list[Task]], None]
    scheduler: SchedulerSettings
    queues: HostQueues | None = None
    """None if the bus is in this process."""


class Portion(NamedTuple):
    """A part of all that a check looks at."""

    suspects: Sequence[Suspect]
    done: int
    """How much was looked at by now."""
    total: int


class CheckFailedError(Exception):
    """A check can't be made now: a sentence why."""


class AuditCheck(ABC):
    name: ClassVar[CheckName]
    compares: ClassVar[str]
    """Both sides, in a few words."""

    def __init__(self, tools: AuditTools) -> None:
        self._tools = tools

    @abstractmethod
    def look(self) -> Iterator[Portion]:
        """At everything."""

    @abstractmethod
    def judge(self, suspect: Suspect) -> Drift | None:
        """What certainly differs now; None if nothing does, or something is under way."""

    @abstractmethod
    def repair(self, drift: Drift) -> None:
        """Do what the remedy says of what was judged a moment ago; whoever else is at it meanwhile wins."""
