"""How an agent gets the driver `fake`."""

from __future__ import annotations

from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from moorage.drivers.fake.options import OPTIONS
from moorage.drivers.plugin import DriverContext, Loaded, Plugin


def _load(context: DriverContext) -> Loaded:
    settings = FakeSettings.from_conf(context.conf)
    return Loaded(FakeDriver(context.host, settings, context.directory, context.images))


PLUGIN = Plugin(_load, OPTIONS, files=("fake-servers.sqlite",), hosts=4)
