"""The `[log]`, `[tracing]` and `[process]` options."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options
from moorage.core.log import LogFormat

OPTIONS: Options = {
    "log": [
        cfg.StrOpt(
            "level",
            default="INFO",
            choices=["DEBUG", "INFO", "WARNING", "ERROR"],
            help="The least that is logged, to standard error; from INFO on, each request has a line.",
        ),
        cfg.StrOpt(
            "format",
            default=LogFormat.TEXT,
            choices=list(LogFormat),
            help="Lines for people, or a JSON object a line with oslo.log's names, for machines that gather "
            "logs.",
        ),
    ],
    "tracing": [
        cfg.URIOpt(
            "endpoint",
            schemes=["http", "https"],
            help="Where an OpenTelemetry collector takes traces (OTLP over HTTP), as http://collector:4318; "
            "none by default. Needs moorage[tracing].",
        ),
        cfg.FloatOpt(
            "sample",
            default=1.0,
            min=0.0,
            max=1.0,
            help="The share of requests that are traced; all processes choose the same ones.",
        ),
    ],
    "process": [
        cfg.FloatOpt(
            "grace_seconds",
            default=25.0,
            min=1.0,
            help="Seconds that a process has to finish what it is at after SIGTERM or SIGINT; then it is "
            "ended by force. Service managers should wait a little longer before they kill it.",
        ),
        cfg.FloatOpt(
            "drain_seconds",
            default=5.0,
            min=0.0,
            help="Of these, those for which a process that others connect to goes on after SIGTERM, while "
            "/readyz answers 503 and each answer is the last one of its connection. A load balancer has to "
            "notice within them; 0 for none. SIGINT has none, either. At most half of grace_seconds.",
        ),
    ],
}
