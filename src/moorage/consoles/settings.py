"""What the proxy to consoles is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oslo_config import cfg

from moorage.consoles.guest_tls import GuestTls
from moorage.http import public_address
from moorage.http.tls import TlsFiles


@dataclass(frozen=True)
class ConsoleSettings:
    listen: str = "127.0.0.1"
    port: int = 6080
    tls: TlsFiles | None = None
    allowed_origins: Sequence[str] = ()
    proxies: int = 0
    """Whose word is taken for the address that a page came from."""
    max_connections: int = 500
    check_interval: float = 2.0
    connect_timeout: float = 10.0
    question_timeout: float = 20.0
    guest_tls: GuestTls | None = None
    """None: consoles are reached in the clear."""

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> ConsoleSettings:
        options = conf.consoles
        return cls(
            listen=options.listen,
            port=options.port,
            tls=TlsFiles.from_conf(conf, "consoles"),
            allowed_origins=tuple(options.allowed_origins),
            proxies=public_address.trusted_proxies(conf),
            max_connections=options.max_connections,
            check_interval=options.check_interval,
            connect_timeout=options.connect_timeout,
            question_timeout=conf.compute.question_timeout,
            guest_tls=GuestTls.from_conf(conf),
        )
