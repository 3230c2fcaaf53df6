"""How an agent gets the driver `ironic`."""

from __future__ import annotations

from moorage.drivers.ironic.options import OPTIONS
from moorage.drivers.plugin import DriverContext, Loaded, Plugin


def _load(context: DriverContext) -> Loaded:
    """What reaches an Ironic is imported only where one is reached: every command reads the options."""
    from moorage.drivers.ironic import loading

    return loading.load(context)


PLUGIN = Plugin(_load, OPTIONS)
