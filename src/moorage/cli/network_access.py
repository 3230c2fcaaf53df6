"""Before a conductor starts: does the network service let it in?"""

from __future__ import annotations

import logging

from oslo_config import cfg

from moorage.cli.errors import CommandError
from moorage.network.probe import Health, probe

LOG = logging.getLogger(__name__)


def require_network(conf: cfg.ConfigOpts) -> None:
    """Refuse to start without credentials, and with wrong ones if the configuration says so."""
    found = probe(conf)
    if found.health is Health.READY:
        return
    wrong = found.health is Health.DENIED and conf.network.required_on_conductor
    if wrong or found.health is Health.MISCONFIGURED:
        raise CommandError(f"{found.sentence}. Mend [neutron], or [network] provider")
    LOG.warning("starting without Neutron, so boots will wait: %s", found.sentence)
