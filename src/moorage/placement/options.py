"""The `[placement]` options; those that the reference has keep its names and meaning."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options
from moorage.http.options import public_endpoint, tls

OPTIONS: Options = {
    "placement": [
        cfg.StrOpt("listen", default="127.0.0.1", help="Address that moorage-placement listens on."),
        cfg.PortOpt("port", default=8778, help="Port that moorage-placement listens on."),
        *tls("moorage-placement"),
        public_endpoint("https://cloud.example.com/placement"),
        cfg.IntOpt("workers", default=2, min=1, help="Processes that moorage-placement runs."),
        cfg.IntOpt("threads", default=16, min=1, help="Requests that a process works on at the same time."),
        cfg.IntOpt(
            "max_request_body_size",
            default=16 * 1024 * 1024,
            min=1,
            help="Bytes that the body of a request may have; more is answered with 413. Reports of "
            "many providers at once are large.",
        ),
        cfg.BoolOpt(
            "required",
            default=True,
            help="Whether moorage-api, moorage-conductor and moorage-agent refuse to start if "
            "[placement_client] is missing, is refused, or leads to a service that is too old. If not, they "
            "warn, start, and try again whenever they need Placement. One that is only away right now keeps "
            "nobody from starting, and `moorage up` has a Placement of its own.",
        ),
        cfg.IntOpt(
            "max_allocation_candidates",
            default=10_000,
            min=-1,
            help="Candidates that a request without a smaller limit gets at the most; -1 for no bound.",
        ),
        cfg.IntOpt(
            "max_search_steps",
            default=500_000,
            min=1,
            help="Combinations that one candidates request may try before it answers with what it has.",
        ),
        cfg.StrOpt(
            "allocation_candidates_generation_strategy",
            default="breadth-first",
            choices=["depth-first", "breadth-first"],
            help="Which candidates a bound keeps: all of the first trees, or a few of every tree.",
        ),
        cfg.StrOpt(
            "candidate_order",
            default="spread",
            choices=["spread", "pack", "random"],
            help="Which trees come first: the emptiest, the fullest, or any.",
        ),
        cfg.BoolOpt(
            "randomize_allocation_candidates",
            default=False,
            help="The reference's name for candidate_order = random; wins over it if set.",
        ),
        cfg.StrOpt(
            "incomplete_consumer_project_id",
            default="00000000-0000-0000-0000-000000000000",
            help="Project of consumers that were made before microversion 1.8, which does not name one.",
        ),
        cfg.StrOpt(
            "incomplete_consumer_user_id",
            default="00000000-0000-0000-0000-000000000000",
            help="User of consumers that were made before microversion 1.8, which does not name one.",
        ),
        cfg.StrOpt(
            "tree_owners",
            default="off",
            choices=[
                ("off", "agents may write to all providers, and nobody remembers whose they are"),
                ("record", "a tree is the agent's that first writes to it, and no other's from then on"),
                ("require", "agents may make trees, and write to those only that are their own"),
            ],
            help="Whether trees of providers belong to users with the role moorage-agent. Administrators "
            "and services may write to all of them, whatever is set.",
        ),
        cfg.IntOpt(
            "feed_retention",
            default=900,
            min=60,
            help="Seconds that the change feed is kept; a process that slept longer reads the fleet anew.",
        ),
    ]
}
