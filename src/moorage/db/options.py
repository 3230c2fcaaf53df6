"""The `[database]` options."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options

OPTIONS: Options = {
    "database": [
        cfg.StrOpt(
            "connection",
            default="sqlite:///data/moorage.sqlite",
            secret=True,
            help="SQLAlchemy URL of the database: sqlite:///FILE, or postgresql+psycopg://USER@HOST/NAME.",
        ),
        cfg.FloatOpt(
            "wait_seconds",
            default=60.0,
            min=0.0,
            help="How long a service that starts waits for a database that is away, before it gives up.",
        ),
        cfg.FloatOpt(
            "statement_timeout",
            default=30.0,
            min=0.0,
            help="Seconds after which a service gives up on a statement, and answers 503 to whoever asked; 0 "
            "for never. It does not hold for the commands that operators run, such as migrations.",
        ),
        cfg.IntOpt("pool_size", default=10, min=1, help="Connections that a process keeps open."),
        cfg.StrOpt(
            "sqlite_synchronous",
            default="FULL",
            choices=["NORMAL", "FULL"],
            help="FULL survives a power cut; NORMAL only a kill of the process, but is faster.",
        ),
    ]
}
