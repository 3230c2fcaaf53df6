"""The `[log]` options."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options

OPTIONS: Options = {
    "log": [
        cfg.StrOpt(
            "level",
            default="INFO",
            choices=["DEBUG", "INFO", "WARNING", "ERROR"],
            help="The least that is logged, to standard error; from INFO on, each request has a line.",
        )
    ]
}
