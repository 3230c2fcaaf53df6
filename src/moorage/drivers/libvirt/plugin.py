"""How an agent gets the driver `libvirt`."""

from __future__ import annotations

from pathlib import Path

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.drivers.adoption import FoundGuest
from moorage.drivers.host_check import HostCheck
from moorage.drivers.libvirt.host.node_identity import FILE
from moorage.drivers.libvirt.options import OPTIONS
from moorage.drivers.libvirt.vifs.options import DIRECTORY as VIFS
from moorage.drivers.plugin import DriverContext, Loaded, Plugin


def _load(context: DriverContext) -> Loaded:
    """What speaks to libvirt is imported only where there is one: every command reads the options."""
    try:
        import libvirt  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "[agent] driver = libvirt needs libvirt's Python binding: pip install 'moorage[libvirt]' (it is "
            "compiled with libvirt-dev, pkg-config and gcc), or your distribution's python3-libvirt "
            f"({error})"
        ) from error
    from moorage.drivers.libvirt import loading

    return loading.load(context)


def _check(conf: cfg.ConfigOpts) -> list[HostCheck]:
    from moorage.drivers.libvirt import host_checks

    return host_checks.check(conf)


def _adopt(conf: cfg.ConfigOpts, directory: Path, *, dry_run: bool) -> list[FoundGuest]:
    from moorage.drivers.libvirt.adoption import adopting

    return adopting.adopt(conf, directory, dry_run=dry_run)


PLUGIN = Plugin(_load, OPTIONS, files=(FILE, VIFS), check=_check, adopt=_adopt, is_this_machine=True)
