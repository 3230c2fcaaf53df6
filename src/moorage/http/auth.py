"""Authentication as WSGI middleware: each strategy ends in the headers that Keystone's would set."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import bcrypt
from oslo_config import cfg

from moorage.core import context
from moorage.core.config import ConfigError
from moorage.http.caller import Environ
from moorage.http.errors import ErrorStyle, HttpError

LOG = logging.getLogger(__name__)
StartResponse = Callable[..., Any]
Wsgi = Callable[[Environ, StartResponse], Iterable[bytes]]

_IDENTITY_HEADERS = ("HTTP_X_USER_ID", "HTTP_X_TENANT_ID", "HTTP_X_PROJECT_ID", "HTTP_X_DOMAIN_ID")
_BCRYPT = re.compile(r"\$2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}")
_ROLES = re.compile(r"[A-Za-z0-9_-]+(,[A-Za-z0-9_-]+)*")
_ADMIN = "admin"
_KEYSTONE_SECONDS = 30
"""For an answer of Keystone's, unless the operator says otherwise; the library would wait for ever."""
_TRUSTED_TOKENS = {"admin", "notused"}
"""`notused` is what keystoneauth's plug-in `none` sends."""


def middleware(
    conf: cfg.ConfigOpts, public_paths: frozenset[str], style: ErrorStyle
) -> Callable[[Wsgi], Wsgi]:
    """The middleware for the configured strategy; `public_paths` need no login."""
    strategy = conf.auth.strategy
    if strategy == "none":
        return lambda inner: _Public(NoAuth(inner, style), inner, public_paths)
    if strategy == "basic":
        file = Path(conf.auth.basic_auth_file)
        users, roles = read_password_file(file), read_roles(file)
        return lambda inner: _Public(BasicAuth(inner, users, style, roles), inner, public_paths)
    from keystonemiddleware import auth_token, opts  # a fifth of a second, which only Keystone's users pay

    for group, options in opts.list_auth_token_opts():
        conf.register_opts(options, group=group)
    conf.set_default("http_connect_timeout", _KEYSTONE_SECONDS, group="keystone_authtoken")
    return lambda inner: _Public(
        auth_token.AuthProtocol(inner, {"oslo_config_config": conf}), inner, public_paths
    )


class _Public:
    """Lets the paths that everybody may see past the check."""

    def __init__(self, checked: Wsgi, unchecked: Wsgi, paths: frozenset[str]) -> None:
        self._checked = checked
        self._unchecked = unchecked
        self._paths = paths

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        inner = self._unchecked if environ.get("PATH_INFO", "") in self._paths else self._checked
        return inner(environ, start_response)


class NoAuth:
    """Trusts the caller: a token `user[:project]` says who it is, and `X-Roles` what it may."""

    def __init__(self, inner: Wsgi, style: ErrorStyle) -> None:
        self._inner = inner
        self._style = style

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if token is None:
            return _unauthorized(self._style, start_response, {})
        user, _, project = token.partition(":")
        if "HTTP_X_ROLES" not in environ:
            environ["HTTP_X_ROLES"] = "admin" if user in _TRUSTED_TOKENS else ""
        environ["HTTP_X_USER_ID"] = user
        if not environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE"):
            environ["HTTP_X_TENANT_ID"] = project or user
            environ.setdefault("HTTP_X_PROJECT_ID", project or user)
        return self._inner(environ, start_response)


class BasicAuth:
    """HTTP basic: bcrypt is slow on purpose, so a password that passed is remembered by its digest."""

    def __init__(
        self,
        inner: Wsgi,
        users: dict[str, bytes],
        style: ErrorStyle,
        roles: Mapping[str, str] | None = None,
    ) -> None:
        """Who has no roles is an administrator."""
        self._inner = inner
        self._style = style
        self._users = users
        self._roles = roles or {}
        self._passed: dict[str, bytes] = {}

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        user, password = _basic_credentials(environ.get("HTTP_AUTHORIZATION", ""))
        if user is None or not self._matches(user, password):
            return _unauthorized(self._style, start_response, {"WWW-Authenticate": 'Basic realm="moorage"'})
        for header in _IDENTITY_HEADERS:
            environ.pop(header, None)
        environ.pop("HTTP_OPENSTACK_SYSTEM_SCOPE", None)
        environ["HTTP_X_USER_ID"] = user
        environ["HTTP_X_TENANT_ID"] = environ["HTTP_X_PROJECT_ID"] = user
        environ["HTTP_X_ROLES"] = self._roles.get(user, _ADMIN)
        return self._inner(environ, start_response)

    def _matches(self, user: str, password: bytes) -> bool:
        digest = hashlib.sha256(password).digest()
        if hmac.compare_digest(self._passed.get(user, b""), digest):
            return True
        stored = self._users.get(user)
        if stored is None or not bcrypt.checkpw(password[:72], stored):
            return False
        self._passed[user] = digest
        return True


def _basic_credentials(header: str) -> tuple[str | None, bytes]:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None, b""
    try:
        user, _, password = base64.b64decode(encoded, validate=True).partition(b":")
        return user.decode(), password
    except (binascii.Error, UnicodeDecodeError):
        return None, b""


def read_password_file(path: Path) -> dict[str, bytes]:
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise ConfigError(f"[auth] basic_auth_file can't be read: {error}") from error
    users = {user: rest.split(":")[0] for user, rest in _entries(lines)}
    for user, stored in users.items():
        if not _BCRYPT.fullmatch(stored):
            raise ConfigError(f"[auth] basic_auth_file {path}: the password of {user} is not a bcrypt hash")
    return {user: stored.encode() for user, stored in users.items()}


def read_roles(path: Path) -> dict[str, str]:
    """Of users that have any behind their password, with commas between them."""
    found = {
        user: rest.split(":", 1)[1] for user, rest in _entries(path.read_text().splitlines()) if ":" in rest
    }
    for user, roles in found.items():
        if not _ROLES.fullmatch(roles):
            raise ConfigError(f"[auth] basic_auth_file {path}: {user} has no roles that can be read")
    return found


def _entries(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        if ":" in line and not line.startswith("#"):
            user, _, rest = line.strip().partition(":")
            yield user, rest


def hash_password(password: str) -> str:
    return bcrypt.hashpw(password.encode()[:72], bcrypt.gensalt(rounds=10)).decode()


def _unauthorized(
    style: ErrorStyle, start_response: StartResponse, headers: dict[str, str]
) -> Iterable[bytes]:
    refusal = HttpError(401, "Authentication required")
    content_type, body = style.render(refusal, None, context.current().request_id, lambda _media_type: True)
    start_response(
        "401 Unauthorized",
        [("Content-Type", content_type), ("Content-Length", str(len(body))), *headers.items()],
    )
    return [body]
