"""The `[ironic]` options; how to reach Ironic is said in keystoneauth's words, in the same section."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options

OPTIONS: Options = {
    "ironic": [
        cfg.StrOpt(
            "partition_key",
            default=None,
            deprecated_name="conductor_group",
            mutable=True,
            help="Conductor group whose nodes this host may manage, whatever its case. Unset: all nodes. "
            "Empty: those of the group without a name, which nodes are in that nobody has put into another. "
            "Nova's name for it, conductor_group, is understood, too.",
        ),
        cfg.StrOpt(
            "shard",
            default="",
            mutable=True,
            help="Shard whose nodes this host may manage; with a partition_key, nodes have to match both.",
        ),
        cfg.ListOpt(
            "peer_list",
            default=[],
            mutable=True,
            help="Hosts that may share the partition; of these, those that live do. This host always does. "
            "Empty: all hosts that serve the same partition.",
        ),
        cfg.BoolOpt(
            "failover_servers",
            default=True,
            help="Whether this host takes over nodes that carry servers from a peer that is down, and the "
            "servers with them. If not, it takes only nodes that are free.",
        ),
        cfg.StrOpt(
            "node_selection",
            default="scheduler",
            choices=[
                ("scheduler", "Each node of Ironic is a node of its own, and the scheduler chooses one."),
                (
                    "reservation",
                    "The host is a single node that offers what the whole partition has; the "
                    "agent reserves a machine in Ironic (from API version 1.52).",
                ),
            ],
            help="Who chooses the machine of a server.",
        ),
        cfg.FloatOpt(
            "full_listing_interval",
            default=600.0,
            min=0.0,
            help="Seconds after which all nodes are listed; looks in between ask only for what has changed. "
            "0 to list all nodes at each look.",
        ),
        cfg.BoolOpt(
            "shared_capacity",
            default=False,
            help="With node_selection = reservation: count the machines of the partition once, in a provider "
            "that all its hosts share, instead of once for each host. All of them have to say the same, and "
            "flavors have to ask for a seat, and for the machine in a group of its own: "
            "resources:CUSTOM_MOORAGE_SEAT=1, resources1:CUSTOM_GOLD=1.",
        ),
        cfg.FloatOpt(
            "poll_interval",
            default=2.0,
            min=0.05,
            help="Seconds between two looks at a node that is worked on.",
        ),
        cfg.IntOpt(
            "retries",
            default=60,
            min=0,
            help="Looks in a row at which a node may be locked, or Ironic away, before a task fails.",
        ),
        cfg.FloatOpt(
            "deploy_timeout",
            default=7200.0,
            min=1.0,
            help="Seconds after which a deployment counts as failed.",
        ),
        cfg.FloatOpt(
            "sweep_grace",
            default=120.0,
            min=0.0,
            help="Seconds for which a machine has to be held for a server before the agent asks whether that "
            "server is there. If it is not, and the machine has Moorage's mark, it is torn down.",
        ),
        cfg.IntOpt(
            "quarantine_after",
            default=3,
            min=0,
            help="Failures to deploy or to clean a machine after which no server comes to it any more, until "
            "`moorage-manage ironic release`, or until an operator takes it out of use, or into maintenance, "
            "in Ironic. 0 for never.",
        ),
        cfg.FloatOpt(
            "quarantine_window",
            default=86_400.0,
            min=1.0,
            help="Seconds in which these failures have to come. For as long, others are chosen before a "
            "machine that failed.",
        ),
        cfg.StrOpt(
            "console_log",
            default="",
            help="The file that has what a machine prints on its console, as this host sees it: a path in "
            "which {node} stands for the UUID of the machine in Ironic, {name} for its name there, and "
            "{server} for the UUID of its server, as /var/log/consoles/{name}.log. Something else writes it. "
            "Unset: there is no console log.",
        ),
        cfg.FloatOpt(
            "power_timeout",
            default=300.0,
            min=1.0,
            help="Seconds after which a power action counts as failed.",
        ),
    ]
}
