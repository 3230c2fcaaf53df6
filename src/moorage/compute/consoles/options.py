"""The `[consoles]` options: of the Compute API, which gives tokens, and of the proxy, which takes them."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options

OPTIONS: Options = {
    "consoles": [
        cfg.StrOpt(
            "base_url",
            default="http://127.0.0.1:6080",
            help="Where users reach the proxy: every URL of a console begins with it. With https, only pages "
            "that came by https open consoles.",
        ),
        cfg.IntOpt(
            "token_ttl",
            default=600,
            min=1,
            help="Seconds within which the URL of a console has to be opened.",
        ),
        cfg.StrOpt("listen", default="127.0.0.1", help="Address that moorage-console-proxy listens on."),
        cfg.PortOpt("port", default=6080, help="Port that moorage-console-proxy listens on."),
        cfg.StrOpt("cert", help="File with the proxy's certificate, in PEM: it speaks TLS then."),
        cfg.StrOpt("key", help="File with the key of the certificate, unless that is in the same file."),
        cfg.ListOpt(
            "allowed_origins",
            default=[],
            help="Names of further hosts whose pages may open consoles, beside the proxy's own.",
        ),
        cfg.StrOpt("metrics_listen", default="127.0.0.1", help="Address that metrics are served on."),
        cfg.PortOpt("metrics_port", default=0, help="Port of metrics and health; 0 for none."),
        cfg.IntOpt("max_connections", default=500, min=1, help="Connections that a proxy has at once."),
        cfg.FloatOpt(
            "check_interval",
            default=2.0,
            min=0.1,
            help="Seconds between two looks whether open consoles may still be seen: they end when their "
            "server moves or is deleted.",
        ),
        cfg.FloatOpt(
            "connect_timeout",
            default=10.0,
            min=0.1,
            help="Seconds that a proxy waits for a console to answer.",
        ),
    ]
}
