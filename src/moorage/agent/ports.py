"""The ports that conductors leave to an agent while a deployment is upgraded: see `network/delegation.py`.

An agent that fails throws away what it made, so that the next host begins anew; ports that a conductor made
are the conductor's to keep. What an agent that dies leaves behind is found by the server it belongs to: by
the next agent, or by the delete of the server.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from oslo_config import cfg

from moorage.drivers.contract import DriverError
from moorage.network.contract import Network, NetworkError, NetworkUnavailableError, PortRecord, ServerPorts
from moorage.network.delegation import Delegated

LOG = logging.getLogger(__name__)
T = TypeVar("T")
StillWanted = Callable[[], bool]
"""Whether the agent goes on, and knows nothing newer about a server: then its ports are ours to work on."""


@dataclass(frozen=True)
class PortSettings:
    tries: int = 5
    """So often Neutron is asked in a row before another host is tried."""
    first_pause: float = 0.5
    plug_seconds: float = 0.0
    """How long ports have to come up; 0 for not to wait."""
    plug_is_fatal: bool = True

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> PortSettings:
        return cls(plug_seconds=conf.network.plug_timeout, plug_is_fatal=conf.network.plug_is_fatal)


class Ports:
    def __init__(self, network: Network | None, settings: PortSettings | None = None) -> None:
        self._network = network
        self._settings = settings or PortSettings()

    @property
    def have_network(self) -> bool:
        return self._network is not None

    def get_ready(self, delegated: Delegated, wanted: StillWanted) -> list[PortRecord]:
        """Phase 2, after phase 1 if that is ours; on failure nothing is left of what we made."""
        try:
            return self._bound(delegated, wanted)
        except DriverError:
            self.throw_away(delegated, wanted)
            raise

    def _bound(self, delegated: Delegated, wanted: StillWanted) -> list[PortRecord]:
        network = self._required()
        binding = delegated.binding
        ports = binding.ports
        if delegated.order is not None:
            order = delegated.order
            (ports,) = [_ports_of(one) for one in self._patiently(lambda: network.prepare([order]), wanted)]
        bound = msgspec.structs.replace(binding, ports=ports)
        (done,) = [_ports_of(one) for one in self._patiently(lambda: network.bind([bound]), wanted)]
        return done

    def throw_away(self, delegated: Delegated, wanted: StillWanted) -> None:
        """Those that a conductor made are left to it; and so are all once it has decided something else."""
        if delegated.order is None or self._network is None or not wanted():
            return
        order = delegated.order
        wishes = order.networks if isinstance(order.networks, list) else []
        brought = frozenset(wish["port"] for wish in wishes if wish.get("port"))
        try:
            self._network.release([ServerPorts(order.server_uuid, [], brought)])
        except (NetworkError, NetworkUnavailableError) as error:
            LOG.warning("ports of server %s are left behind for now: %s", order.server_uuid, error)

    def wait_until_up(self, server_uuid: str, ports: list[PortRecord], wanted: StillWanted) -> None:
        """Until they carry traffic, for which they have a bounded time."""
        if not (ports and self._settings.plug_seconds):
            return
        network, holding = self._required(), ServerPorts(server_uuid, ports)
        deadline = time.monotonic() + self._settings.plug_seconds
        while not all(self._patiently(lambda: network.are_up([holding]), wanted)):
            if not wanted():
                raise DriverError("nobody waits for the ports any more", retry_elsewhere=True)
            if time.monotonic() >= deadline:
                self._not_up(server_uuid)
                return
            time.sleep(self._settings.first_pause)

    def _not_up(self, server_uuid: str) -> None:
        if self._settings.plug_is_fatal:
            raise DriverError("the ports did not come up in time", retry_elsewhere=True)
        LOG.warning("server %s runs, but its ports are not up", server_uuid)

    def release(self, holding: ServerPorts) -> None:
        """A server is gone for good."""
        network = self._required()
        try:
            network.release([holding])
        except (NetworkError, NetworkUnavailableError) as error:
            raise DriverError(f"the ports could not be released: {error}") from error

    def _required(self) -> Network:
        if self._network is None:
            raise DriverError("this host has no credentials for Neutron", retry_elsewhere=True)
        return self._network

    def _patiently(self, ask: Callable[[], T], wanted: StillWanted) -> T:
        """A network service that is away for a moment is no reason to leave the host."""
        pause = self._settings.first_pause
        for left in reversed(range(self._settings.tries)):
            try:
                return ask()
            except NetworkUnavailableError as error:
                if not left or not wanted():
                    raise DriverError(str(error), retry_elsewhere=True) from error
                LOG.warning("next try in %.1f s: %s", pause, error)
                time.sleep(pause)
                pause *= 2
        raise AssertionError("there is at least one try")


def _ports_of(outcome: list[PortRecord] | NetworkError) -> list[PortRecord]:
    if isinstance(outcome, NetworkError):
        raise DriverError(str(outcome), retry_elsewhere=outcome.retry_elsewhere)
    return outcome
