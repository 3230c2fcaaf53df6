"""The `[filter_scheduler]` and `[pci]` options, which keep the reference's names."""

from __future__ import annotations

from collections.abc import Mapping

from oslo_config import cfg

from moorage.core.config import ConfigError, Options
from moorage.scheduler.settings import SchedulerSettings
from moorage.topology.pci import PciAlias, parse_aliases

OPTIONS: Options = {
    "filter_scheduler": [
        cfg.IntOpt(
            "max_instances_per_host", default=0, min=0, help="Servers that a node may have; 0 for no bound."
        ),
        cfg.FloatOpt("cpu_weight_multiplier", default=1.0, help="How much free processors count."),
        cfg.FloatOpt("ram_weight_multiplier", default=1.0, help="How much free memory counts."),
        cfg.FloatOpt("disk_weight_multiplier", default=1.0, help="How much free disk counts."),
        cfg.FloatOpt(
            "num_instances_weight_multiplier",
            default=0.0,
            help="How much the number of servers counts; below 0 hosts with fewer come first.",
        ),
        cfg.FloatOpt(
            "pool_weight_multiplier",
            default=1.0,
            help="How much it counts that a host which reserves bare metal has few servers.",
        ),
        cfg.FloatOpt("soft_affinity_weight_multiplier", default=1.0, help="How much soft affinity counts."),
        cfg.FloatOpt(
            "soft_anti_affinity_weight_multiplier", default=1.0, help="How much soft anti-affinity counts."
        ),
        cfg.FloatOpt(
            "build_failure_weight_multiplier",
            default=1_000_000.0,
            help="How much recent build failures count against a host.",
        ),
    ],
    "pci": [
        cfg.MultiStrOpt(
            "alias",
            default=[],
            help="PCI devices that flavors may ask for by a name (`pci_passthrough:alias`), as JSON with "
            "`name`, and `vendor_id` and `product_id` or `resource_class`; `traits` that they need, and "
            "`numa_policy`, if wanted. May be given several times; the same for API and conductors.",
        ),
    ],
}


def settings(conf: cfg.ConfigOpts) -> SchedulerSettings:
    """ConfigError if an alias makes no sense."""
    weights = conf.filter_scheduler
    return SchedulerSettings(
        max_candidates=conf.scheduler.candidates,
        max_attempts=conf.scheduler.max_attempts,
        max_servers_per_node=weights.max_instances_per_host,
        cpu_weight=weights.cpu_weight_multiplier,
        ram_weight=weights.ram_weight_multiplier,
        disk_weight=weights.disk_weight_multiplier,
        server_count_weight=weights.num_instances_weight_multiplier,
        pool_weight=weights.pool_weight_multiplier,
        soft_affinity_weight=weights.soft_affinity_weight_multiplier,
        soft_anti_affinity_weight=weights.soft_anti_affinity_weight_multiplier,
        build_failure_weight=weights.build_failure_weight_multiplier,
        confine_projects=conf.scheduler.limit_tenants_to_placement_aggregate,
        require_project_aggregates=conf.scheduler.placement_aggregate_required_for_tenants,
        isolate_by_traits=conf.scheduler.enable_isolated_aggregate_filtering,
        isolate_by_images=conf.scheduler.enable_image_aggregate_filtering,
        require_image_hardware=conf.scheduler.image_metadata_prefilter,
        pci_aliases=_aliases(conf),
    )


def _aliases(conf: cfg.ConfigOpts) -> Mapping[str, PciAlias]:
    try:
        return parse_aliases(conf.pci.alias)
    except ValueError as error:
        raise ConfigError(f"[pci] alias: {error}") from error
