"""The options of Compute; those that the reference has keep its names and meaning."""

from __future__ import annotations

from oslo_config import cfg

from moorage.compute.consoles.options import OPTIONS as CONSOLE_OPTIONS
from moorage.compute.quotas.options import OPTIONS as UNIFIED_OPTIONS
from moorage.core.config import Options
from moorage.http.options import public_endpoint, tls

_QUOTAS = (
    ("instances", 10, "Servers of a project."),
    ("cores", 20, "Virtual CPUs of a project's servers."),
    ("ram", 50 * 1024, "Memory of a project's servers, in MiB."),
    ("metadata_items", 128, "Metadata items of one server."),
    ("injected_files", 5, "Files that a request may inject."),
    ("injected_file_content_bytes", 10 * 1024, "Size of one injected file."),
    ("injected_file_path_length", 255, "Length of an injected file's path."),
    ("key_pairs", 100, "Key pairs of a user."),
    ("server_groups", 10, "Server groups of a project."),
    ("server_group_members", 10, "Servers in one group."),
)

QUOTAS = tuple(name for name, _, _ in _QUOTAS)
"""Of which there are limits."""

OPTIONS: Options = {
    "compute": [
        cfg.StrOpt("listen", default="127.0.0.1", help="Address that moorage-api listens on."),
        cfg.PortOpt("port", default=8774, help="Port that moorage-api listens on."),
        *tls("moorage-api"),
        public_endpoint("https://cloud.example.com/compute"),
        cfg.IntOpt("workers", default=2, min=1, help="Processes that moorage-api runs."),
        cfg.IntOpt("threads", default=16, min=1, help="Requests that a process works on at the same time."),
        cfg.IntOpt(
            "max_request_body_size",
            default=114_688,
            min=1,
            help="Bytes that the body of a request may have; more is answered with 413.",
        ),
        cfg.IntOpt(
            "service_down_time",
            default=60,
            min=1,
            help="Seconds without a heartbeat after which a service counts as down.",
        ),
        cfg.IntOpt("max_limit", default=1000, min=1, help="Items that one page of a list has at the most."),
        cfg.StrOpt("default_availability_zone", default="nova", help="Zone of hosts that are in none."),
        cfg.StrOpt("internal_service_availability_zone", default="internal", help="Zone of other services."),
        cfg.IntOpt(
            "attach_timeout",
            default=60,
            min=1,
            help="Seconds that a request to attach an interface waits for it to be there; it goes on after "
            "that, but whoever asked is told that it is not there yet.",
        ),
        cfg.IntOpt(
            "question_timeout",
            default=20,
            min=1,
            help="Seconds that a request waits for what only an agent knows, as the console log of a server.",
        ),
        cfg.BoolOpt(
            "force_config_drive",
            default=False,
            help="Give every new server a config drive, whether or not its user or its image asks for one: "
            "where guests can't reach a metadata service.",
        ),
        cfg.BoolOpt(
            "allow_resize_to_same_host",
            default=False,
            help="Whether a server that is resized may stay on its host, if that has room for both flavors.",
        ),
        cfg.IntOpt(
            "reclaim_interval",
            default=0,
            min=0,
            help="Seconds for which a server that its user deletes is kept, shut down, so that it can be "
            "restored; 0 for none.",
        ),
        cfg.IntOpt(
            "keep_deleted",
            default=90 * 86_400,
            min=0,
            help="Seconds for which deleted servers are kept in the database, and finished operations, "
            "traces, actions and audits; 0 for ever. Reports of usage go back so far.",
        ),
        cfg.IntOpt(
            "shelved_offload_time",
            default=0,
            min=-1,
            help="Seconds that a shelved server stays on its host, so that it is back sooner; 0 for none, -1 "
            "for ever.",
        ),
        cfg.IntOpt(
            "mirror_interval",
            default=600,
            min=0,
            help="Seconds between two comparisons of all host aggregates with those in Placement, which "
            "put right what an outage has left; 0 for none.",
        ),
    ],
    "quota": [
        *(
            cfg.IntOpt(name, default=default, min=-1, help=f"{what} -1 for no limit.")
            for name, default, what in _QUOTAS
        ),
        *UNIFIED_OPTIONS["quota"],
    ],
    "oslo_limit": UNIFIED_OPTIONS["oslo_limit"],
    **CONSOLE_OPTIONS,
}
