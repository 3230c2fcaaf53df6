"""Options of `[libvirt]` about moves, by the names that the field knows."""

from __future__ import annotations

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "migration_uri",
        default="qemu+tls://%s/system",
        help="How other hosts reach the libvirt of this one, to send servers to it and copy disks from it; "
        "`%s` stands for its address.",
    ),
    cfg.StrOpt(
        "live_migration_inbound_addr",
        default="",
        help="Address or name of this host for moves, on a network of their own, if there is one; empty: its "
        "name.",
    ),
    cfg.BoolOpt(
        "live_migration_with_native_tls",
        default=False,
        help="QEMU encrypts what it sends to other hosts; it needs certificates of its own, see "
        "`migrate_tls_x509_cert_dir` in qemu.conf.",
    ),
    cfg.IntOpt(
        "live_migration_bandwidth",
        default=0,
        min=0,
        help="MiB a second that a live migration may use; 0: all that there is.",
    ),
    cfg.IntOpt(
        "live_migration_downtime",
        default=500,
        min=100,
        help="Milliseconds that a server may stand still at the end of a live migration.",
    ),
    cfg.IntOpt(
        "live_migration_downtime_steps",
        default=10,
        min=3,
        help="In so many steps that is allowed, in case that less will do.",
    ),
    cfg.IntOpt(
        "live_migration_downtime_delay",
        default=75,
        min=3,
        help="Seconds between two of those steps, for each GiB of the server.",
    ),
    cfg.IntOpt(
        "live_migration_completion_timeout",
        default=800,
        min=0,
        help="Seconds for each GiB of the server after which its live migration takes too long; 0: never.",
    ),
    cfg.StrOpt(
        "live_migration_timeout_action",
        default="abort",
        choices=[
            ("abort", "The server stays where it is."),
            (
                "force_complete",
                "As an administrator may ask for: post-copy if it is permitted, else a pause.",
            ),
        ],
        help="What happens to a live migration that has taken too long.",
    ),
    cfg.BoolOpt(
        "live_migration_permit_post_copy",
        default=False,
        help="A server may go on at its destination while a part of its memory is still at its source. Then "
        "it is lost if either host dies, or the network between them.",
    ),
    cfg.BoolOpt(
        "live_migration_permit_auto_converge",
        default=False,
        help="A server that changes its memory faster than it can be sent is slowed down; not together with "
        "post-copy.",
    ),
    cfg.BoolOpt(
        "live_migration_unsafe",
        default=False,
        help="Migrate although libvirt does not know the file system as one that hosts share. For "
        "laboratories: on a real file system of that kind it corrupts disks.",
    ),
]
