"""The `[conductor]` and `[scheduler]` options."""

from __future__ import annotations

import socket

from oslo_config import cfg

from moorage.core.config import Options

OPTIONS: Options = {
    "conductor": [
        cfg.StrOpt(
            "host",
            default=socket.gethostname(),
            sample_default="<the machine's name>",
            help="Name of this machine in the list of services; conductors of one machine share it.",
        ),
        cfg.FloatOpt("heartbeat_interval", default=10.0, min=0.1, help="Seconds between two heartbeats."),
        cfg.StrOpt("metrics_listen", default="127.0.0.1", help="Address that metrics are served on."),
        cfg.PortOpt("metrics_port", default=0, help="Port of metrics and health; 0 for none."),
        cfg.IntOpt("threads", default=2, min=1, help="Batches of operations worked on at the same time."),
        cfg.IntOpt(
            "lease_seconds",
            default=30,
            min=1,
            help="After this time the work of a dead conductor is taken over; longer than a step takes.",
        ),
        cfg.FloatOpt(
            "ask_again_seconds",
            default=30.0,
            min=0.1,
            help="After this time an agent that has not answered is asked again.",
        ),
        cfg.IntOpt(
            "resize_confirm_window",
            default=0,
            min=0,
            help="Seconds after which a resize or a migration is confirmed by itself; 0 for never.",
        ),
        cfg.StrOpt(
            "placement",
            default="service",
            choices=[
                ("service", "what [placement_client] names"),
                ("database", "Moorage's own tables, without a service in between"),
            ],
            help="Where decisions ask for candidates and make their claims. Where Placement is Moorage's and "
            "shares this database, asking it directly is faster; it takes a Placement worker's memory.",
        ),
        cfg.IntOpt(
            "audit_interval",
            default=3600,
            min=0,
            help="Seconds between two audits that one of the conductors makes by itself; 0 for none.",
        ),
        cfg.IntOpt(
            "audit_grace",
            default=60,
            min=0,
            help="Seconds after which an audit looks again at what it found: it may have been under way.",
        ),
        cfg.StrOpt(
            "repair",
            default="nothing",
            choices=[
                ("nothing", "tell, in metrics and to `moorage audit`"),
                ("safe", "mend what can't be wrong"),
            ],
            help="What audits do about what they find that conductors make by themselves.",
        ),
        cfg.IntOpt("batch", default=64, min=1, help="Operations that are worked on together."),
    ],
    "scheduler": [
        cfg.IntOpt("max_attempts", default=3, min=1, help="Hosts that a build is tried on before it fails."),
        cfg.IntOpt(
            "pending_timeout",
            default=0,
            min=0,
            help="Seconds that a server waits for capacity if no host fits; 0 fails it at once.",
        ),
        cfg.IntOpt(
            "candidates", default=20, min=1, help="Candidates that Placement is asked for per decision."
        ),
        cfg.BoolOpt(
            "limit_tenants_to_placement_aggregate",
            default=True,
            help="Keep a project in the aggregates whose metadata names it (filter_tenant_id…), if there "
            "are any. Other projects stay out of these in any case.",
        ),
        cfg.BoolOpt(
            "placement_aggregate_required_for_tenants",
            default=False,
            help="Refuse servers of projects that no aggregate names, instead of placing them anywhere else.",
        ),
        cfg.BoolOpt(
            "enable_isolated_aggregate_filtering",
            default=True,
            help="Keep servers that don't ask for them out of aggregates with trait:NAME=required.",
        ),
        cfg.BoolOpt(
            "image_metadata_prefilter",
            default=False,
            help="Let servers go only to hosts that say they have the devices which the image names: "
            "`hw_disk_bus`, `hw_cdrom_bus`, `hw_video_model`, `hw_vif_model`, `hw_firmware_type`.",
        ),
        cfg.BoolOpt(
            "enable_image_aggregate_filtering",
            default=True,
            help="Keep servers out of aggregates whose metadata wants other image properties than theirs.",
        ),
    ],
}
