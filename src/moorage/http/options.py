"""The `[auth]` options, shared by both APIs."""

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
    ]
}
