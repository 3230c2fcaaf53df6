"""Users of RabbitMQ for hosts' agents, as a definitions file that `rabbitmqctl import_definitions` takes."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import msgspec

from moorage.bus import permissions
from moorage.bus.permissions import AgentPermissions

_SALT_BYTES = 4
_FORBIDDEN = frozenset("/*#%\\\"'")


class BrokerUser(msgspec.Struct, frozen=True):
    host: str
    name: str
    password: str
    virtual_host: str
    permissions: AgentPermissions

    def __repr__(self) -> str:
        """Without the password."""
        return f"BrokerUser({self.name})"


def of_agent(exchange: str, virtual_host: str, host: str) -> BrokerUser:
    """One with a new password; ValueError if the host's name would mean something to the broker."""
    if not host or not host.isprintable() or " " in host or _FORBIDDEN & set(host):
        raise ValueError(f"{host!r} can't be the name of a host")
    password = secrets.token_urlsafe(32)
    return BrokerUser(
        host, f"{exchange}-agent-{host}", password, virtual_host, permissions.of_agent(exchange, host)
    )


def definitions(users: Sequence[BrokerUser]) -> dict[str, Any]:
    """What adds them to a broker, or gives them another password, and leaves all else there as it is.

    There are only digests of passwords in it.
    """
    return {
        "users": [
            {
                "name": user.name,
                "password_hash": _digest(user.password),
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": "",
            }
            for user in users
        ],
        "permissions": [
            {
                "user": user.name,
                "vhost": user.virtual_host,
                "configure": user.permissions.configure,
                "write": user.permissions.write,
                "read": user.permissions.read,
            }
            for user in users
        ],
        "topic_permissions": [
            {
                "user": user.name,
                "vhost": user.virtual_host,
                "exchange": user.permissions.exchange,
                "write": user.permissions.topic_write,
                "read": user.permissions.topic_read,
            }
            for user in users
        ],
    }


def _digest(password: str) -> str:
    salt = secrets.token_bytes(_SALT_BYTES)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()
