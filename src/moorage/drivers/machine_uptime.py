"""Since when this machine runs, as hypervisors tell it."""

from __future__ import annotations

import os
from datetime import timedelta

from moorage.core.clock import uptime, utcnow


def machine_uptime() -> str:
    """As the command `uptime` puts it."""
    loads = ", ".join(f"{load:.2f}" for load in os.getloadavg())
    return f"{utcnow():%H:%M:%S} up {timedelta(seconds=int(uptime()))}, load average: {loads}"
