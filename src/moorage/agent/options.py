"""The `[agent]` options."""

from __future__ import annotations

import socket

from oslo_config import cfg

from moorage.core.config import Options

OPTIONS: Options = {
    "agent": [
        cfg.StrOpt(
            "host",
            default=socket.gethostname(),
            sample_default="<the machine's name>",
            help="Name of this host; it has to stay the same for as long as the host has servers.",
        ),
        cfg.StrOpt(
            "cell", default="default", help="Cell of this host: says which address pool it draws from."
        ),
        cfg.StrOpt(
            "driver",
            default="fake",
            help="What keeps the servers of this host: `fake`, `ironic`, or a driver that another package "
            "brings, by the name of its entry point in the group `moorage.drivers`.",
        ),
        *(
            cfg.FloatOpt(
                f"{name}_allocation_ratio",
                min=0.01,
                help=f"{what} given out for each that there is, unless an aggregate of the host says "
                "another ratio; unset, the driver knows.",
            )
            for name, what in (("cpu", "Processors"), ("ram", "Memory"), ("disk", "Disk"))
        ),
        cfg.StrOpt(
            "state_directory",
            default="/var/lib/moorage/agent",
            help="Where the agent keeps its journal; it has to survive restarts.",
        ),
        cfg.StrOpt("metrics_listen", default="127.0.0.1", help="Address that metrics are served on."),
        cfg.PortOpt("metrics_port", default=0, help="Port of metrics and health; 0 for none."),
        cfg.IntOpt("threads", default=32, min=1, help="Tasks that the agent works on at the same time."),
        cfg.FloatOpt("heartbeat_interval", default=10.0, min=0.1, help="Seconds between two heartbeats."),
        cfg.FloatOpt(
            "inventory_interval",
            default=60.0,
            min=0.1,
            help="Seconds between two looks at the nodes; what changed is reported to Placement.",
        ),
        cfg.FloatOpt(
            "full_report_interval",
            default=600.0,
            min=1.0,
            help="Seconds after which everything is reported again, changed or not.",
        ),
        cfg.FloatOpt(
            "remember_seconds",
            default=86_400.0,
            min=60.0,
            help="How long a destroyed server is remembered, so that a late task does not revive it.",
        ),
    ]
}
