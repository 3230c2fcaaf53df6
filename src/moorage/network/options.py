"""The `[network]` options, and `[pool]`: the addresses that the built-in network gives out."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options

OPTIONS: Options = {
    "network": [
        cfg.StrOpt(
            "provider",
            default="pool",
            choices=["pool", "neutron"],
            help="Where servers get their ports: the built-in pools, or the Neutron that [neutron] names.",
        ),
        cfg.BoolOpt(
            "required_on_conductor",
            default=False,
            help="Whether moorage-conductor refuses to start if [neutron] has no credentials, or if Neutron "
            "does not let it in with them. If not, it warns and starts: without credentials, agents that "
            "have some make and bind the ports; with wrong ones, boots wait. The next release has this on "
            "by default.",
        ),
        cfg.IntOpt("threads", default=8, min=1, help="Requests to Neutron that a process has at once."),
        cfg.IntOpt(
            "timeout",
            default=30,
            min=1,
            help="Seconds that Neutron has for an answer, where [neutron] timeout says nothing else.",
        ),
        cfg.IntOpt(
            "plug_timeout",
            default=300,
            min=0,
            help="Seconds that a new server's ports have to come up before it counts as built; 0 for not "
            "to wait for them.",
        ),
        cfg.BoolOpt(
            "plug_is_fatal",
            default=True,
            help="Whether a host on which a server's ports do not come up in time is left for another one; "
            "if not, the server is taken for built with a warning.",
        ),
        cfg.IntOpt(
            "refresh_interval",
            default=300,
            min=0,
            help="Seconds between two looks at the ports of all servers, for what no event told; 0 for none.",
        ),
    ],
    "pool": [
        cfg.StrOpt("network_name", default="private", help="Name of the network that servers are shown on."),
        cfg.DictOpt(
            "ranges",
            default={"default": "10.64.0.0/12"},
            help=(
                "The range of each cell's hosts, as a network (its first address is left to the gateway) or "
                "as FIRST-LAST or FIRST-LAST/LENGTH, with the length of the network's prefix; hosts of other "
                "cells draw from the one called default. "
                "Example: default:10.64.0.0/12,rack-7:10.80.7.10-10.80.7.250/24"
            ),
        ),
        cfg.IntOpt(
            "mtu",
            default=1450,
            min=576,
            max=65535,
            help="The largest packet on the network. The default leaves room for VXLAN between hosts whose "
            "own network has 1500.",
        ),
        cfg.ListOpt(
            "dns_servers",
            default=[],
            help="Addresses of DNS servers that guests are told of; the gateway's, if none are named.",
        ),
    ],
}
