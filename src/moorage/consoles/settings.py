"""What the proxy to consoles is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oslo_config import cfg


@dataclass(frozen=True)
class ConsoleSettings:
    listen: str = "127.0.0.1"
    port: int = 6080
    cert: str | None = None
    key: str | None = None
    allowed_origins: Sequence[str] = ()
    max_connections: int = 500
    check_interval: float = 2.0
    connect_timeout: float = 10.0
    question_timeout: float = 20.0

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> ConsoleSettings:
        options = conf.consoles
        return cls(
            listen=options.listen,
            port=options.port,
            cert=options.cert,
            key=options.key,
            allowed_origins=tuple(options.allowed_origins),
            max_connections=options.max_connections,
            check_interval=options.check_interval,
            connect_timeout=options.connect_timeout,
            question_timeout=conf.compute.question_timeout,
        )
