"""What a package brings that has a driver: an entry point of the group `moorage.drivers` names a `Plugin`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from oslo_config import cfg

from moorage.core.config import Options
from moorage.drivers.adoption import FoundGuest
from moorage.drivers.contract import Driver
from moorage.drivers.host_check import HostCheck
from moorage.drivers.image_store import ImageStore
from moorage.drivers.machines import ListedMachine
from moorage.placement.client.contract import PlacementClient


@dataclass(frozen=True)
class DriverContext:
    """What an agent gives its driver."""

    host: str
    directory: Path
    """Where it may keep what has to survive a restart; it is there, and for the agent's account alone."""
    conf: cfg.ConfigOpts
    """Knows the options of the plugin."""
    placement: PlacementClient
    images: ImageStore
    """Connects when it is used: a driver that needs no images needs no way to them."""


def _needs_nothing(conf: cfg.ConfigOpts) -> list[HostCheck]:
    return []


def _nothing_changes(conf: cfg.ConfigOpts) -> bool:
    return False


@dataclass(frozen=True)
class Loaded:
    """A driver, and how an agent has to treat it."""

    driver: Driver
    apply: Callable[[cfg.ConfigOpts], bool] = _nothing_changes
    """Takes what may change while it runs from a new configuration; whether it serves other nodes now.
    ConfigError if that makes no sense: then nothing has changed."""
    failover_servers: bool = True
    """If it shares nodes with other hosts: whether it takes over servers of peers that are down."""
    sweep_grace: float = 120.0
    """Likewise: for how many seconds a machine is held before the agent asks whether it should be."""


class Adopt(Protocol):
    def __call__(self, conf: cfg.ConfigOpts, directory: Path, *, dry_run: bool) -> list[FoundGuest]:
        """All that there are; `directory` is as in `DriverContext`. May be called beside an agent."""


@dataclass(frozen=True)
class Plugin:
    load: Callable[[DriverContext], Loaded]
    """ConfigError if what is configured can't be used."""
    options: Options = field(default_factory=dict)
    """Its options, by the section of the configuration file, which is best called like the driver."""
    files: tuple[str, ...] = ()
    """Names of what it puts into its directory."""
    check: Callable[[cfg.ConfigOpts], list[HostCheck]] = _needs_nothing
    """Looks whether servers would run on this machine; changes nothing."""
    machines: Callable[[cfg.ConfigOpts], Iterable[ListedMachine]] | None = None
    """Tells of all machines that its system has, for operators; None if it has none but its hosts."""
    adopt: Adopt | None = None
    """Makes guests ours that another system has left on this machine; None if there can be none."""
    hosts: int = 1
    """How many of its hosts one process runs that nobody told a number."""
    first_steps: tuple[str, ...] = ()
    """What to try in a new cloud, where the usual flavors and images are not for its machines; `{moorage}`,
    `{config}` and `{data}` stand for the command, for its configuration file and for its directory."""
    is_this_machine: bool = False
    """Its host is the machine that the agent runs on, so that one process has one of them."""
