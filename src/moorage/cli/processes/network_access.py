"""Before a conductor starts: does the network service let it in?"""

from __future__ import annotations

import logging

from oslo_config import cfg

from moorage.cli.errors import CommandError
from moorage.network.probe import NetworkHealth, probe

LOG = logging.getLogger(__name__)


def require_network(conf: cfg.ConfigOpts) -> None:
    """Refuse to start with a section that makes no sense; without a way in, if the configuration says so."""
    found = probe(conf)
    if found.health is NetworkHealth.READY:
        return
    shut_out = found.health in (NetworkHealth.MISSING, NetworkHealth.DENIED)
    if found.health is NetworkHealth.MISCONFIGURED or (shut_out and conf.network.required_on_conductor):
        raise CommandError(f"{found.sentence}. Mend [neutron], or [network] provider")
    if found.health is not NetworkHealth.MISSING:  # the conductor itself says what follows from that
        LOG.warning("starting without Neutron, so boots will wait: %s", found.sentence)
