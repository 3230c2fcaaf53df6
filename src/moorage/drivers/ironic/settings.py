"""How the Ironic driver behaves: the options of `[ironic]` that a restart applies."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg


@dataclass(frozen=True)
class IronicSettings:
    poll_interval: float = 2.0
    retries: int = 60
    deploy_timeout: float = 7200.0
    power_timeout: float = 300.0
    ownership_patience: float = 60.0
    shared_capacity: bool = False
    full_listing_interval: float = 600.0
    quarantine_after: int = 3
    quarantine_window: float = 86_400.0
    console_log: str = ""

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> IronicSettings:
        options = conf.ironic
        return cls(
            poll_interval=options.poll_interval,
            retries=options.retries,
            deploy_timeout=options.deploy_timeout,
            power_timeout=options.power_timeout,
            shared_capacity=options.shared_capacity,
            full_listing_interval=options.full_listing_interval,
            quarantine_after=options.quarantine_after,
            quarantine_window=options.quarantine_window,
            console_log=options.console_log,
        )
