"""The wire to Keystone's unified limits: those registered for our service, and those of single projects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1.access import AccessInfoV3
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity.base import BaseIdentityPlugin
from oslo_config import cfg
from prometheus_client import Counter

from moorage.core import openstack_services

GROUP = "oslo_limit"
CALLS = Counter(
    "moorage_unified_limits_calls_total",
    "Requests to Keystone for the limits of projects.",
    ["resource", "outcome"],
)
_VERSION = "/v3"
_TIMEOUT = 10
"""Seconds for an answer: somebody waits."""
_MODEL = "flat"
_SEERS = frozenset({"admin", "service"})
"""Roles that are shown the limits of all projects; to others they seem to have none of their own."""


class LimitsUnavailableError(Exception):
    """Keystone does not tell; the text is for operators."""


@dataclass(frozen=True)
class OwnEndpoint:
    """Which entry of Keystone's catalogue is ours: limits are registered for a service in a region."""

    endpoint_id: str | None = None
    service_name: str | None = None
    service_type: str | None = "compute"
    region_name: str | None = None
    interface: str = "public"

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> OwnEndpoint:
        found = conf[GROUP]
        return cls(
            found.endpoint_id,
            found.endpoint_service_name,
            found.endpoint_service_type,
            found.endpoint_region_name,
            found.endpoint_interface.removesuffix("URL"),
        )

    def find(self, catalogue: list[dict[str, Any]]) -> tuple[str, str]:
        """The ids of the service and of its region."""
        found = {
            (service["id"], endpoint["region_id"])
            for service in catalogue
            for endpoint in service["endpoints"]
            if self._is(service, endpoint)
        }
        if len(found) != 1:
            raise LimitsUnavailableError(
                f"Keystone's catalogue has {len(found) or 'no'} endpoints like that of [{GROUP}]: set "
                "endpoint_id, or endpoint_service_type and endpoint_region_name"
            )
        return found.pop()

    def _is(self, service: dict[str, Any], endpoint: dict[str, Any]) -> bool:
        if self.endpoint_id is not None:
            return bool(endpoint["id"] == self.endpoint_id)
        return (
            self.service_type in (None, service["type"])
            and self.service_name in (None, service["name"])
            and self.region_name in (None, endpoint["region_id"])
            and self.interface == endpoint["interface"]
        )


class KeystoneLimits:
    """What Keystone has been told of our service; nothing is kept here."""

    def __init__(self, adapter: Adapter, endpoint: OwnEndpoint) -> None:
        self._adapter = adapter
        self._endpoint = endpoint
        self._ours: tuple[str, str] | None = None

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> KeystoneLimits:
        adapter = openstack_services.adapter(conf, GROUP, "identity", _TIMEOUT)
        return cls(adapter, OwnEndpoint.from_conf(conf))

    def registered(self) -> dict[str, int]:
        """By resource: what holds for projects that have no limit of their own."""
        found = self._list("registered_limits", {})
        return {limit["resource_name"]: int(limit["default_limit"]) for limit in found}

    def of_project(self, project_id: str) -> dict[str, int]:
        """By resource: only those that were set for this project."""
        found = self._list("limits", {"project_id": project_id})
        return {limit["resource_name"]: int(limit["resource_limit"]) for limit in found}

    def _list(self, resource: str, query: dict[str, str]) -> list[dict[str, Any]]:
        try:
            service_id, region_id = self._known()
            found = self._get(f"/{resource}", {**query, "service_id": service_id, "region_id": region_id})
            if found.get("truncated"):
                raise LimitsUnavailableError(
                    f"Keystone cuts its list of {resource} off: raise its [unified_limit] list_limit"
                )
            listed: list[dict[str, Any]] = found[resource]
        except openstack_services.DENIALS as error:
            CALLS.labels(resource, "refused").inc()
            raise LimitsUnavailableError(f"Keystone does not accept [{GROUP}]: {error}") from error
        except keystone_errors.ClientException as error:
            CALLS.labels(resource, "failed").inc()
            raise LimitsUnavailableError(f"Keystone can't be reached: {error}") from error
        except (LookupError, TypeError, ValueError) as error:
            CALLS.labels(resource, "failed").inc()
            raise LimitsUnavailableError(f"What answers is not Keystone: {error!r}") from error
        except LimitsUnavailableError:
            CALLS.labels(resource, "refused").inc()
            raise
        CALLS.labels(resource, "read").inc()
        return listed

    def _known(self) -> tuple[str, str]:
        """Asked once: who we are, and what model limits go by, changes with a restart."""
        if self._ours is None:
            access = self._access()
            _require_sight(access)
            model = self._get("/limits/model", {})["model"]["name"]
            if model != _MODEL:
                raise LimitsUnavailableError(f"limits of Keystone's model {model} are not supported")
            self._ours = self._endpoint.find(access.service_catalog.catalog)
        return self._ours

    def _access(self) -> AccessInfoV3:
        """Who Keystone takes us for, with its catalogue."""
        auth = self._adapter.auth or self._adapter.session.auth
        access = auth.get_access(self._adapter.session) if isinstance(auth, BaseIdentityPlugin) else None
        if not isinstance(access, AccessInfoV3):
            raise LimitsUnavailableError(f"[{GROUP}] needs credentials that Keystone knows, as a password")
        return access

    def _get(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        begin = openstack_services.versioned(self._adapter, _VERSION)
        return dict(self._adapter.get(f"{begin}{path}", params=query).json())


def _require_sight(access: AccessInfoV3) -> None:
    """To those who may not see them, projects seem to have no limits of their own."""
    if not access.system_scoped and not _SEERS & set(access.role_names or ()):
        raise LimitsUnavailableError(
            f"Keystone does not show us the limits of all projects: the user of [{GROUP}] needs the role "
            "service, or reader with system_scope = all"
        )
