"""Whether the services that a process depends on can be reached, for its probes."""

from __future__ import annotations

import socket
from functools import partial

from oslo_config import cfg

from moorage.core.health import HealthCheck
from moorage.network import probe as network_probe
from moorage.network.probe import NetworkHealth
from moorage.placement.client import probe as placement_probe
from moorage.placement.client.probe import PlacementHealth

_SECONDS = 2.0
_AMQP = 5672
_LEFT_TO_OTHERS = (NetworkHealth.READY, NetworkHealth.MISSING)
"""Without credentials, agents do what conductors can't."""


def placement(conf: cfg.ConfigOpts) -> list[HealthCheck]:
    return [HealthCheck("placement", partial(_ask_placement, conf))]


def network(conf: cfg.ConfigOpts) -> list[HealthCheck]:
    return [HealthCheck("neutron", partial(_ask_neutron, conf))] if conf.network.provider == "neutron" else []


def broker(conf: cfg.ConfigOpts) -> list[HealthCheck]:
    return [HealthCheck("broker", partial(_reach_broker, conf))]


def _ask_placement(conf: cfg.ConfigOpts) -> str | None:
    found = placement_probe.probe(conf)
    return None if found.health is PlacementHealth.READY else f"{found.health}: {found.sentence}"


def _ask_neutron(conf: cfg.ConfigOpts) -> str | None:
    found = network_probe.probe(conf)
    return None if found.health in _LEFT_TO_OTHERS else f"{found.health}: {found.sentence}"


def _reach_broker(conf: cfg.ConfigOpts) -> str | None:
    """One of its nodes is enough: oslo.messaging goes to the next by itself. A process may do without any."""
    from moorage.bus.oslo import (  # nearly a second: those who use it have spent it
        oslo_messaging,
        set_defaults,
    )

    set_defaults(conf)
    troubles = []
    for host in oslo_messaging.TransportURL.parse(conf, conf.transport_url).hosts:
        try:
            socket.create_connection((host.hostname, host.port or _AMQP), _SECONDS).close()
        except OSError as error:
            troubles.append(f"{host.hostname}:{host.port or _AMQP}: {error}")
        else:
            return None
    return f"can't be reached: {', '.join(troubles)}" if troubles else None
