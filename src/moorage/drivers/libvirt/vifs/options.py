"""Options of `[libvirt]` that are about ports."""

from __future__ import annotations

from oslo_config import cfg

DIRECTORY = "vifs"
"""In the agent's own directory: what is plugged."""

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "ovsdb_connection",
        default="unix:/run/openvswitch/db.sock",
        help="Where the Open vSwitch of this host is told of ports, for networks of Neutron's that have one.",
    ),
    cfg.BoolOpt(
        "guest_offloads",
        default=True,
        help="Whether guests may leave checksums and segmentation to the host. Off where Open vSwitch works "
        "without the kernel (datapath netdev): there nobody would make them.",
    ),
    cfg.StrOpt(
        "network_directory",
        default="",
        help="Directory of what serves the built-in network on this host; dnsmasq, which is not root, has to "
        "be able to read there. Empty: /run/moorage/HOST.",
    ),
    cfg.StrOpt(
        "tunnel_address",
        default="",
        help="This host's own address, for tunnels of the built-in network (VXLAN) to other hosts. Empty: "
        "there are none, and guests reach those of this host only.",
    ),
    cfg.ListOpt(
        "tunnel_peers",
        default=[],
        help="The tunnel addresses of all hosts of the built-in network; this host's own may be among them, "
        "so that all hosts have the same list.",
    ),
    cfg.PortOpt("tunnel_port", default=4789, help="UDP port of the tunnels, on all hosts."),
]
