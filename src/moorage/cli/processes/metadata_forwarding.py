"""The address that guests of this machine ask for their metadata, where a driver carries their packets."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from moorage.agent.metadata_forwarder import ForwarderSettings, GuestOnHost, MetadataForwarder
from moorage.drivers.contract import Driver
from moorage.drivers.parts import GuestAddressing

LOG = logging.getLogger(__name__)


def start(url: str | None, secret: str | None, drivers: Mapping[str, Driver]) -> MetadataForwarder | None:
    """For the guests of these hosts; None where there is nothing to do, or the address can't be had."""
    known = {host: driver for host, driver in drivers.items() if isinstance(driver, GuestAddressing)}
    if not known or not url or not secret:
        return None

    def find(address: str) -> GuestOnHost | None:
        for host, driver in known.items():
            server_uuid = driver.server_at(address)
            if server_uuid is not None:
                return GuestOnHost(server_uuid, host)
        return None

    try:
        forwarder = MetadataForwarder(ForwarderSettings(url, secret), find)
    except OSError as error:
        LOG.error("guests get no metadata but by config drive: can't listen where they ask: %s", error)
        return None
    forwarder.start()
    return forwarder
