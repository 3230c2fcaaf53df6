"""The `[pool]` options: the addresses that the built-in network gives out."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options

OPTIONS: Options = {
    "pool": [
        cfg.StrOpt("network_name", default="private", help="Name of the network that servers are shown on."),
        cfg.DictOpt(
            "ranges",
            default={"default": "10.64.0.0/12"},
            help=(
                "The range of each cell's hosts, as a network (its first address is left to the gateway) or "
                "as FIRST-LAST; hosts of other cells draw from the one called default. "
                "Example: default:10.64.0.0/12,rack-7:10.80.7.10-10.80.7.250"
            ),
        ),
    ]
}
