"""The wire to Neutron: requests with our credentials or with a user's token, and faults as typed values."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1.adapter import Adapter
from prometheus_client import Counter

from moorage.core import context, openstack_services, paging
from moorage.core.paging import EndlessListError, MarkerGoneError, Page
from moorage.network.contract import NetworkDeniedError, NetworkUnavailableError

LOG = logging.getLogger(__name__)
CALLS = Counter("moorage_neutron_calls_total", "Requests to Neutron.", ["method", "resource"])
Json = dict[str, Any]
Query = Sequence[tuple[str, str]]
T = TypeVar("T")
_VERSION = "/v2.0"
_UNBINDABLE = "PortBindingError"
"""Told with status 500, though it is the host's problem and not Neutron's."""
_MOST_FILTERS = 40
"""So many values of one filter go into a query: a line of a request has a bound."""
_MOST_TURNS = 10
"""So many pages of bindings are dropped; a port has one or two in all."""


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
        return _value(self._send("GET", f"/{resource}/{uuid}"), _singular(resource), dict)

    def check(self, resource: str, uuid: str) -> None:
        """Whether it could be shown, where to show it means to make it."""
        self._send("GET", f"/{resource}/{uuid}", params=[("fields", "dry-run")])

    def find(self, resource: str, query: Query = ()) -> list[Json]:
        """All of them, on however many pages they come."""
        return [entry for page in self.find_pages(resource, query) for entry in page]

    def find_pages(self, resource: str, query: Query = ()) -> Iterator[list[Json]]:
        """Likewise, page by page."""

        def read(marker: str | None) -> Page[Json]:
            try:
                return self._page(resource, query, marker)
            except NeutronFault as fault:
                if marker is None or fault.status not in (400, 404):
                    raise
                raise MarkerGoneError(marker) from fault

        try:
            for page in paging.pages(read, lambda entry: str(entry["id"])):
                yield list(page)
        except EndlessListError as error:
            raise NetworkUnavailableError(f"Neutron's list of {resource} has no end: {error}") from error

    def find_some(self, resource: str, query: Query = ()) -> list[Json]:
        """Those on the first page: enough to see whether there are any, and whether we are let in."""
        return self._page(resource, query).entries

    def _page(self, resource: str, query: Query, marker: str | None = None) -> Page[Json]:
        """Of the address of the next one only the marker is taken: who knows where the rest leads."""
        asked = [*query] if marker is None else [*query, ("marker", marker)]
        body = self._send("GET", f"/{resource}", params=asked)
        name = _plural(resource)
        entries = _value(body, name, list)
        try:
            return Page(entries, _next_marker(body.get(f"{name}_links", [])))
        except (LookupError, TypeError) as error:
            raise NetworkUnavailableError(f"Neutron does not tell the next page of {name}") from error

    def find_by(self, resource: str, name: str, values: Sequence[str]) -> list[Json]:
        """Those for which the attribute is one of these."""
        found: list[Json] = []
        for start in range(0, len(values), _MOST_FILTERS):
            chunk = values[start : start + _MOST_FILTERS]
            found += self.find(resource, [(name, value) for value in chunk])
        return found

    def create(self, resource: str, values: Json) -> Json:
        name = _singular(resource)
        return _value(self._send("POST", f"/{resource}", json={name: values}), name, dict)

    def update(self, resource: str, uuid: str, values: Json, revision: int | None = None) -> Json:
        """With a `revision`, only if nobody has changed it since."""
        headers = {} if revision is None else {"If-Match": f"revision_number={revision}"}
        name = _singular(resource)
        changed = self._send("PUT", f"/{resource}/{uuid}", json={name: values}, headers=headers)
        return _value(changed, name, dict)

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

    def drop_inactive_bindings(self, port_id: str) -> None:
        """All but the one that counts. Markers don't work here, but what is dropped makes room for more."""
        for _ in range(_MOST_TURNS):
            try:
                page = self._page(f"ports/{port_id}/bindings", [("status", "INACTIVE")])
            except NeutronFault as fault:
                if fault.status != 404:
                    raise
                return
            for binding in page.entries:
                if binding["status"] == "INACTIVE":
                    self.delete(f"ports/{port_id}/bindings", binding["host"])
            if page.marker is None:
                return
        raise NetworkUnavailableError(f"Neutron has more and more bindings of port {port_id}")

    def add_binding(self, port_id: str, host: str, profile: Json) -> Json:
        """One more, inactive; that it is there already is fine."""
        bindings = f"ports/{port_id}/bindings"
        try:
            return self.create(bindings, {"host": host, "profile": profile})
        except NeutronFault as fault:
            if fault.kind != "PortBindingAlreadyExists":
                raise
        return self.show(bindings, host)

    def activate_binding(self, port_id: str, host: str) -> None:
        """From now on it counts; that it does already is fine."""
        try:
            self._send("PUT", f"/ports/{port_id}/bindings/{host}/activate")
        except NeutronFault as fault:
            if fault.kind != "PortBindingAlreadyActive":
                raise

    def _send(self, method: str, path: str, headers: Mapping[str, str] | None = None, **options: Any) -> Json:
        CALLS.labels(method, path.split("/")[1]).inc()
        sent = {**context.request_headers(), **(headers or {})}
        if self._token is not None:
            sent["X-Auth-Token"] = self._token
        try:
            answer = self._adapter.request(
                f"{openstack_services.versioned(self._adapter, _VERSION)}{path}",
                method,
                headers=sent,
                raise_exc=False,
                authenticated=self._token is None,
                **options,
            )
        except openstack_services.DENIALS as error:
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


def _value(body: Json, name: str, kind: type[T]) -> T:
    """What an answer has under this name; there may be more beside it."""
    value = body.get(name)
    if not isinstance(value, kind):
        raise NetworkUnavailableError(f"What answers is not Neutron: there is no {name} in {str(body)[:200]}")
    return value


def _next_marker(links: Sequence[Json]) -> str | None:
    """From the address that Neutron offers for the next page; None if there is none."""
    for link in links:
        if link["rel"] == "next":
            return parse_qs(urlsplit(link["href"]).query)["marker"][0]
    return None


def _plural(resource: str) -> str:
    """What a list of them is called in an answer."""
    return resource.split("/")[-1].replace("-", "_")


def _singular(resource: str) -> str:
    """What one of them is called in a question or an answer."""
    name = _plural(resource)
    return f"{name.removesuffix('ies')}y" if name.endswith("ies") else name.removesuffix("s")


def _fault(status: int, answer: Any) -> NeutronFault:
    try:
        told = answer.json()["NeutronError"]
        return NeutronFault(status, told["type"], told["message"])
    except (ValueError, KeyError, TypeError):
        return NeutronFault(status, "", answer.text[:200])
