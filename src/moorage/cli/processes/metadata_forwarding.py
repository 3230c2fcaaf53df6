"""The address that guests of this machine ask for their metadata, where a driver carries their packets."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from oslo_config import cfg

from moorage.agent.metadata_forwarder import ForwarderSettings, GuestOnHost, MetadataForwarder
from moorage.drivers.contract import Driver
from moorage.drivers.parts import GuestAddressing

LOG = logging.getLogger(__name__)


def settings(conf: cfg.ConfigOpts, url: str | None) -> ForwarderSettings | None:
    """For the metadata service at `url`; None if there is none, or nothing to sign with."""
    options = conf.metadata
    if not url or not options.shared_secret:
        return None
    return ForwarderSettings(url, options.shared_secret, cafile=options.cafile, certfile=options.certfile)


def start(asked: ForwarderSettings | None, drivers: Mapping[str, Driver]) -> MetadataForwarder | None:
    """For the guests of these hosts; None where there is nothing to do, or the address can't be had."""
    known = {host: driver for host, driver in drivers.items() if isinstance(driver, GuestAddressing)}
    if not known or asked is None:
        return None

    def find(address: str) -> GuestOnHost | None:
        for host, driver in known.items():
            server_uuid = driver.server_at(address)
            if server_uuid is not None:
                return GuestOnHost(server_uuid, host)
        return None

    try:
        forwarder = MetadataForwarder(asked, find)
    except OSError as error:
        LOG.error("guests get no metadata but by config drive: can't listen where they ask: %s", error)
        return None
    forwarder.start()
    return forwarder
