"""The `[fake]` options: the size of a simulated host, and what goes wrong on it."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options
from moorage.drivers.fake.faults import STEPS

OPTIONS: Options = {
    "fake": [
        cfg.IntOpt("nodes", default=1, min=1, help="Nodes of the simulated host."),
        cfg.IntOpt("vcpus", default=64, min=1, help="Processors of a node."),
        cfg.IntOpt("ram_mb", default=262_144, min=1, help="Memory of a node, in MiB."),
        cfg.IntOpt("disk_gb", default=4_096, min=1, help="Disk of a node, in GiB."),
        cfg.FloatOpt(
            "cpu_allocation_ratio", default=4.0, min=0.1, help="Virtual processors for each real one."
        ),
        cfg.FloatOpt(
            "ram_allocation_ratio", default=1.0, min=0.1, help="Memory given out for each MiB there is."
        ),
        cfg.FloatOpt(
            "disk_allocation_ratio", default=1.0, min=0.1, help="Disk given out for each GiB there is."
        ),
        cfg.ListOpt(
            "traits",
            default=["COMPUTE_NODE", "HW_CPU_X86_VMX"],
            help="Traits of each node.",
        ),
        cfg.StrOpt(
            "resource_class",
            default="",
            help="Makes nodes exclusive, like bare metal: each has one unit of this class, for one server.",
        ),
        cfg.DictOpt(
            "faults",
            default={},
            help=(
                f"What goes wrong, by step ({', '.join(STEPS)}): fail, fail_here (another host may do), "
                "hang, delay=SECONDS; joined with + if there are several, each with "
                "@PROBABILITY if it is not certain. Example: spawn:delay=0.5+fail_here@0.1,destroy:delay=1. "
                "A server's metadata `fake:STEP` says it for that server alone."
            ),
        ),
        cfg.FloatOpt("hang_seconds", default=3600.0, min=0.0, help="How long a call hangs that hangs."),
    ],
}
