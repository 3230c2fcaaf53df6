"""The `[log]` and `[process]` options."""

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
    "process": [
        cfg.FloatOpt(
            "grace_seconds",
            default=25.0,
            min=1.0,
            help="Seconds that a process has to finish what it is at after SIGTERM or SIGINT; then it is "
            "ended by force. Service managers should wait a little longer before they kill it.",
        )
    ],
}
