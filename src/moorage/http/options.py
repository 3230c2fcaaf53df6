"""What all processes that serve HTTP share: the `[auth]` options, those about proxies, and those of TLS."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options

OPTIONS: Options = {
    "auth": [
        cfg.StrOpt(
            "strategy",
            default="keystone",
            choices=["none", "basic", "keystone"],
            help="Who checks callers: nobody (loopback only), a password file, or Keystone.",
        ),
        cfg.StrOpt(
            "basic_auth_file",
            default="/etc/moorage/htpasswd",
            help="For strategy `basic`: lines of user:bcrypt-hash; every such user is an administrator.",
        ),
    ],
    "oslo_middleware": [
        cfg.BoolOpt(
            "enable_proxy_headers_parsing",
            default=False,
            help="Whether a proxy is in front that sets X-Forwarded-Proto, -Host, -Prefix and -For, or "
            "Forwarded: links then begin with the address that these name, and the log has the client's "
            "address. Without such a proxy anybody could set them.",
        ),
    ],
    "http": [
        cfg.IntOpt(
            "trusted_proxies",
            default=1,
            min=1,
            help="With [oslo_middleware] enable_proxy_headers_parsing: proxies of yours that a request "
            "passes, one after the other. Each adds to the lists in these headers, and what is further from "
            "their end than that is not believed.",
        ),
    ],
}


def public_endpoint(example: str) -> cfg.Opt:
    """For the group of an API with links."""
    return cfg.StrOpt(
        "public_endpoint",
        help="What all links begin with, whatever address a client has used: for a proxy that can't set "
        f"headers. For example: {example}",
    )


def tls(program: str) -> list[cfg.Opt]:
    """For the group of a program that may speak TLS itself."""
    return [
        cfg.StrOpt(
            "cert",
            help=f"File with the certificate of {program}, and those between it and its authority, in PEM: "
            "it speaks TLS then, 1.2 or newer. SIGHUP has it read anew.",
        ),
        cfg.StrOpt("key", help="File with the key of the certificate, unless that is in the same file."),
        cfg.StrOpt(
            "client_ca",
            help="File with certificates of authorities, in PEM: a client then has to show a certificate "
            "that one of them has signed, also those who ask for health and metrics.",
        ),
    ]
