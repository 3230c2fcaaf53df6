"""The `[consoles]` options: of the Compute API, which gives tokens, and of the proxy, which takes them."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options
from moorage.http.options import tls

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
        *tls("moorage-console-proxy"),
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
            help="Seconds within which a proxy has to have reached a console, TLS included.",
        ),
        cfg.StrOpt(
            "guest_ca",
            help="File with certificates of authorities, in PEM, one of which has signed those of the hosts: "
            "consoles are reached by TLS then, and those that don't speak it are not reached. Files are read "
            "for each connection.",
        ),
        cfg.StrOpt(
            "guest_cert",
            help="File with the certificate that a proxy shows to hosts that ask for one, in PEM.",
        ),
        cfg.StrOpt("guest_key", help="File with its key, unless that is in the same file."),
        cfg.StrOpt(
            "guest_name",
            default="host",
            choices=[
                ("host", "The host of the server, as `openstack compute service list` has it."),
                ("address", "What its agent says that the console's address is."),
            ],
            help="What the certificate of a host has to name, in its subjectAltName.",
        ),
        cfg.ListOpt(
            "plain_hosts",
            default=[],
            help="Hosts whose consoles may be reached without TLS where they don't speak it, though guest_ca "
            "is set: names, or patterns as `ironic-*`.",
        ),
    ]
}
