"""The options about what a host gives its guests, in the field's own names."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options

OPTIONS: Options = {
    "compute": [
        cfg.StrOpt(
            "cpu_shared_set",
            default="",
            help="Processors that guests share, such as `4-12,^8`; empty for all that are not dedicated.",
        ),
        cfg.StrOpt(
            "cpu_dedicated_set",
            default="",
            help="Processors that are given to one guest each (`hw:cpu_policy=dedicated`); empty for none.",
        ),
        cfg.IntOpt(
            "reserved_host_cpus", default=0, min=0, help="Shared processors that guests are not given."
        ),
        cfg.IntOpt(
            "reserved_host_memory_mb", default=512, min=0, help="Memory that guests are not given, in MiB."
        ),
        cfg.IntOpt("reserved_host_disk_mb", default=0, min=0, help="Disk that guests are not given, in MiB."),
        cfg.MultiStrOpt(
            "reserved_huge_pages",
            default=[],
            help="Huge pages that guests are not given, as `node:0,size:2048,count:64`: the NUMA cell, the "
            "size in KiB and how many. May be given several times.",
        ),
        *(
            cfg.FloatOpt(
                f"initial_{name}_allocation_ratio",
                default=default,
                min=0.01,
                help=f"{what} given out for each that there is, where neither "
                f"`[agent] {name}_allocation_ratio` nor an aggregate of the host says another ratio.",
            )
            for name, what, default in (
                ("cpu", "Processors", 4.0),
                ("ram", "Memory", 1.0),
                ("disk", "Disk", 1.0),
            )
        ),
    ],
    "pci": [
        cfg.MultiStrOpt(
            "device_spec",
            default=[],
            help="PCI devices that guests are given, as JSON with `vendor_id`, `product_id` and `address` "
            "(each may be `*`, an address also in its parts), and `resource_class` and `traits` if Placement "
            "shall know them by others than their own. May be given several times.",
        ),
    ],
}
