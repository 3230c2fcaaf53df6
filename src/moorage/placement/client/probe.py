"""A first look at the Placement service that the configuration names: would a process get along with it?"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.core.microversions import Version
from moorage.placement.client.connect import connect
from moorage.placement.client.contract import (
    PlacementDeniedError,
    PlacementRefusedError,
    PlacementUnavailableError,
)
from moorage.placement.client.link import PlacementTooOldError


class PlacementHealth(StrEnum):
    READY = "ready"
    MISCONFIGURED = "misconfigured"
    DENIED = "denied"
    TOO_OLD = "too_old"
    UNREACHABLE = "unreachable"
    """It may be there in a moment; all others need an operator."""


class PlacementProbe(NamedTuple):
    health: PlacementHealth
    sentence: str = ""
    """What is wrong."""
    version: Version | None = None


def probe(conf: cfg.ConfigOpts) -> PlacementProbe:
    """Ask once, without patience."""
    try:
        return PlacementProbe(PlacementHealth.READY, version=connect(conf, attempts=1).check())
    except ConfigError as error:
        return PlacementProbe(PlacementHealth.MISCONFIGURED, str(error))
    except PlacementDeniedError as error:
        return PlacementProbe(PlacementHealth.DENIED, str(error))
    except PlacementTooOldError as error:
        return PlacementProbe(PlacementHealth.TOO_OLD, str(error))
    except (PlacementUnavailableError, PlacementRefusedError) as error:
        return PlacementProbe(PlacementHealth.UNREACHABLE, str(error))
