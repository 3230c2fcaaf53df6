"""Who calls: what an authentication middleware found out, read from the WSGI environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Environ = dict[str, Any]
AGENT_ROLE = "moorage-agent"
"""Of hosts' agents: it opens what they need of Placement and of the built-in images, and shuts out of the
Compute API."""


@dataclass(frozen=True, slots=True)
class Caller:
    user_id: str | None
    project_id: str | None
    roles: tuple[str, ...]
    system_scope: str | None = None
    domain_id: str | None = None
    token: str | None = None
    """Keystone's, if it vouches for the caller: to ask other services on the caller's behalf."""

    @classmethod
    def from_environ(cls, environ: Environ) -> Caller:
        roles = environ.get("HTTP_X_ROLES") or ""
        return cls(
            user_id=environ.get("HTTP_X_USER_ID") or None,
            project_id=environ.get("HTTP_X_PROJECT_ID") or environ.get("HTTP_X_TENANT_ID") or None,
            roles=tuple(role.strip() for role in roles.split(",") if role.strip()),
            system_scope=environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE") or None,
            domain_id=environ.get("HTTP_X_DOMAIN_ID") or None,
            token=_token(environ),
        )

    @property
    def is_agent(self) -> bool:
        return AGENT_ROLE in {role.lower() for role in self.roles}  # Keystone knows no case

    def credentials(self) -> dict[str, Any]:
        """In the words that oslo.policy's rules use."""
        return {
            "user_id": self.user_id,
            "project_id": self.project_id,
            "roles": list(self.roles),
            "system_scope": self.system_scope,
            "domain_id": self.domain_id,
        }


def _token(environ: Environ) -> str | None:
    """What looks like a token elsewhere is no more than a name that somebody gave."""
    confirmed = environ.get("HTTP_X_IDENTITY_STATUS") == "Confirmed"
    return environ.get("HTTP_X_AUTH_TOKEN") if confirmed else None
