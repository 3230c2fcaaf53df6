"""The wire to Neutron: requests with our credentials or with a user's token, and faults as typed values."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1.adapter import Adapter
from prometheus_client import Counter

from moorage.core import neighbours
from moorage.network.contract import NetworkDeniedError, NetworkUnavailableError

LOG = logging.getLogger(__name__)
CALLS = Counter("moorage_neutron_calls_total", "Requests to Neutron.", ["method", "resource"])
Json = dict[str, Any]
Query = Sequence[tuple[str, str]]
_VERSION = "/v2.0"
_UNBINDABLE = "PortBindingError"
"""Told with status 500, though it is the host's problem and not Neutron's."""
_MOST_FILTERS = 40
"""So many values of one filter go into a query: a line of a request has a bound."""


class NeutronFault(Exception):
    """Neutron understood and said no: its status, its name for the fault, and its sentence."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class NeutronLink:
    def __init__(self, adapter: Adapter, token: str | None = None) -> None:
        self._adapter = adapter
        self._token = token

    def as_user(self, token: str | None) -> NeutronLink:
        """The same wire with a user's token, so that Neutron decides what the user may see."""
        return NeutronLink(self._adapter, token)

    def show(self, resource: str, uuid: str) -> Json:
        found: Json = _only_value(self._send("GET", f"/{resource}/{uuid}"))
        return found

    def find(self, resource: str, query: Query = ()) -> list[Json]:
        found: list[Json] = _only_value(self._send("GET", f"/{resource}", params=list(query)))
        return found

    def find_by(self, resource: str, name: str, values: Sequence[str]) -> list[Json]:
        """Those for which the attribute is one of these."""
        found: list[Json] = []
        for start in range(0, len(values), _MOST_FILTERS):
            chunk = values[start : start + _MOST_FILTERS]
            found += self.find(resource, [(name, value) for value in chunk])
        return found

    def create(self, resource: str, values: Json) -> Json:
        body = {resource.removesuffix("s"): values}
        made: Json = _only_value(self._send("POST", f"/{resource}", json=body))
        return made

    def update(self, resource: str, uuid: str, values: Json, revision: int | None = None) -> Json:
        """With a `revision`, only if nobody has changed it since."""
        headers = {} if revision is None else {"If-Match": f"revision_number={revision}"}
        body = {resource.removesuffix("s"): values}
        changed: Json = _only_value(self._send("PUT", f"/{resource}/{uuid}", json=body, headers=headers))
        return changed

    def delete(self, resource: str, uuid: str) -> None:
        """One that is gone is fine."""
        try:
            self._send("DELETE", f"/{resource}/{uuid}")
        except NeutronFault as fault:
            if fault.status != 404:
                raise

    def set_tags(self, port_id: str, tags: Sequence[str]) -> None:
        """These and no others."""
        self._send("PUT", f"/ports/{port_id}/tags", json={"tags": list(tags)})

    def inactive_bindings(self, port_id: str) -> list[str]:
        """The hosts where a port has a binding beside the one that counts; none if there is no port."""
        try:
            found = self.find(f"ports/{port_id}/bindings")
        except NeutronFault as fault:
            if fault.status != 404:
                raise
            return []
        return [binding["host"] for binding in found if binding["status"] == "INACTIVE"]

    def add_binding(self, port_id: str, host: str, profile: Json) -> None:
        """One more, inactive; that it is there already is fine."""
        try:
            body = {"binding": {"host": host, "profile": profile}}
            self._send("POST", f"/ports/{port_id}/bindings", json=body)
        except NeutronFault as fault:
            if fault.kind != "PortBindingAlreadyExists":
                raise

    def activate_binding(self, port_id: str, host: str) -> None:
        """From now on it counts; that it does already is fine."""
        try:
            self._send("PUT", f"/ports/{port_id}/bindings/{host}/activate")
        except NeutronFault as fault:
            if fault.kind != "PortBindingAlreadyActive":
                raise

    def _send(self, method: str, path: str, headers: Mapping[str, str] | None = None, **options: Any) -> Json:
        CALLS.labels(method, path.split("/")[1]).inc()
        sent = dict(headers or {})
        if self._token is not None:
            sent["X-Auth-Token"] = self._token
        try:
            answer = self._adapter.request(
                f"{neighbours.versioned(self._adapter, _VERSION)}{path}",
                method,
                headers=sent,
                raise_exc=False,
                authenticated=self._token is None,
                **options,
            )
        except neighbours.DENIALS as error:
            raise NetworkDeniedError(f"Keystone gives no access to Neutron: {error}") from error
        except keystone_errors.ClientException as error:
            raise NetworkUnavailableError(f"Neutron can't be reached: {error}") from error
        if answer.status_code < 400:
            return _body(answer)
        fault = _fault(answer.status_code, answer)
        if answer.status_code == 401 and self._token is None:
            raise NetworkDeniedError(f"Neutron does not accept our credentials: {fault}")
        if answer.status_code >= 500 and fault.kind != _UNBINDABLE:
            raise NetworkUnavailableError(f"Neutron fails to answer {method} {path}: {fault}")
        raise fault


def _body(answer: Any) -> Json:
    if not answer.content:
        return {}
    try:
        return dict(answer.json())
    except (ValueError, TypeError) as error:
        raise NetworkUnavailableError(f"What answers is not Neutron: {answer.text[:200]}") from error


def _only_value(body: Mapping[str, Any]) -> Any:
    """Neutron wraps each answer in the name of what it is."""
    (value,) = body.values()
    return value


def _fault(status: int, answer: Any) -> NeutronFault:
    try:
        told = answer.json()["NeutronError"]
        return NeutronFault(status, told["type"], told["message"])
    except (ValueError, KeyError, TypeError):
        return NeutronFault(status, "", answer.text[:200])
