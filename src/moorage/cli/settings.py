"""Which configuration files a command reads, and the options of all areas that they may hold."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from oslo_config import cfg

from moorage.agent.options import OPTIONS as AGENT_OPTIONS
from moorage.bus.options import OPTIONS as BUS_OPTIONS
from moorage.compute.options import OPTIONS as COMPUTE_OPTIONS
from moorage.conductor.options import OPTIONS as CONDUCTOR_OPTIONS
from moorage.core import config
from moorage.core.options import OPTIONS as LOG_OPTIONS
from moorage.db.options import OPTIONS as DATABASE_OPTIONS
from moorage.drivers import installed
from moorage.http.options import OPTIONS as HTTP_OPTIONS
from moorage.images.options import OPTIONS as IMAGE_OPTIONS
from moorage.metadata.options import OPTIONS as METADATA_OPTIONS
from moorage.network.options import OPTIONS as NETWORK_OPTIONS
from moorage.placement.options import OPTIONS as PLACEMENT_OPTIONS
from moorage.scheduler.options import OPTIONS as SCHEDULER_OPTIONS

ENVIRONMENT = "MOORAGE_CONFIG"
"""Names the configuration files (separated by a colon) for programs without a command line of their own."""

DEFAULT_FILE = Path("/etc/moorage/moorage.conf")

_OURS: Sequence[config.Options] = (
    LOG_OPTIONS,
    DATABASE_OPTIONS,
    HTTP_OPTIONS,
    PLACEMENT_OPTIONS,
    COMPUTE_OPTIONS,
    CONDUCTOR_OPTIONS,
    SCHEDULER_OPTIONS,
    AGENT_OPTIONS,
    NETWORK_OPTIONS,
    METADATA_OPTIONS,
    IMAGE_OPTIONS,
    BUS_OPTIONS,
)


def _areas() -> list[config.Options]:
    return [*_OURS, *installed.options()]


def files(given: Sequence[Path] | None) -> list[str]:
    """The files named on the command line, else those of the environment, else the usual one if it exists."""
    if given:
        return [str(path) for path in given]
    named = os.environ.get(ENVIRONMENT)
    if named:
        return named.split(os.pathsep)
    return [str(DEFAULT_FILE)] if DEFAULT_FILE.exists() else []


def read(
    given: Sequence[Path] | None = None, overrides: Mapping[str, object] | None = None
) -> cfg.ConfigOpts:
    return config.read(files(given), _areas(), overrides)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Every option of ours, for `oslo-config-generator` and the configuration reference."""
    return [(group, list(options)) for area in _areas() for group, options in area.items()]
