"""How servers move: what `options.py` names."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg

from moorage.core.config import ConfigError

FORCE_COMPLETE = "force_complete"


@dataclass(frozen=True)
class MoveSettings:
    uri: str = "qemu+tls://%s/system"
    address: str = ""
    native_tls: bool = False
    bandwidth: int = 0
    downtime: int = 500
    downtime_steps: int = 10
    downtime_delay: float = 75.0
    completion_timeout: float = 800.0
    timeout_action: str = "abort"
    post_copy: bool = False
    auto_converge: bool = False
    unsafe: bool = False

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> MoveSettings:
        options = conf.libvirt
        if "%s" not in options.migration_uri:
            raise ConfigError("[libvirt] migration_uri needs a %s, in which the host's address goes")
        return cls(
            uri=options.migration_uri,
            address=options.live_migration_inbound_addr,
            native_tls=options.live_migration_with_native_tls,
            bandwidth=options.live_migration_bandwidth,
            downtime=options.live_migration_downtime,
            downtime_steps=options.live_migration_downtime_steps,
            downtime_delay=options.live_migration_downtime_delay,
            completion_timeout=options.live_migration_completion_timeout,
            timeout_action=options.live_migration_timeout_action,
            post_copy=options.live_migration_permit_post_copy,
            auto_converge=options.live_migration_permit_auto_converge,
            unsafe=options.live_migration_unsafe,
        )

    def uri_of(self, host: str) -> str:
        """How others reach the libvirt of this host."""
        return self.uri.replace("%s", self.address or host)
