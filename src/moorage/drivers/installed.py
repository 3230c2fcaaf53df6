"""The drivers that are installed, ours and others': entry points of the group `moorage.drivers`."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from stevedore.extension import ExtensionManager

from moorage.core.config import ConfigError, Options
from moorage.drivers.plugin import Plugin

LOG = logging.getLogger(__name__)
GROUP = "moorage.drivers"


@dataclass(frozen=True)
class _Found:
    plugins: dict[str, Plugin]
    failures: dict[str, str]
    """Why those can't be used that can't, by name."""


def find(name: str) -> Plugin:
    """The driver of that name; ConfigError if there is none, or if it can't be loaded."""
    found = _load()
    if name in found.failures:
        raise ConfigError(f"[agent] driver: {name!r} can't be loaded: {found.failures[name]}")
    if name not in found.plugins:
        known = ", ".join(sorted(found.plugins.keys() | found.failures.keys())) or "none"
        raise ConfigError(f"[agent] driver: there is no driver {name!r}; installed are: {known}")
    return found.plugins[name]


def options() -> list[Options]:
    """Those of all drivers; one that can't be loaded is nobody's trouble but its own agents'."""
    found = _load()
    for name, why in found.failures.items():
        LOG.warning("driver %r can't be loaded, and its options are not known: %s", name, why)
    return [plugin.options for _, plugin in sorted(found.plugins.items())]


def _load() -> _Found:
    found = _Found({}, {})

    def failed(_: object, entry: object, error: BaseException) -> None:
        found.failures[getattr(entry, "name", "")] = f"{type(error).__name__}: {error}"

    for extension in ExtensionManager[Plugin](GROUP, on_load_failure_callback=failed):
        if not isinstance(extension.plugin, Plugin):
            found.failures[extension.name] = f"{extension.entry_point_target} is no Plugin"
        elif extension.name in found.plugins:
            found.failures[extension.name] = "several packages bring one of that name"
        else:
            found.plugins[extension.name] = extension.plugin
    return found
