"""Ironic's API, as far as a compute driver needs it.

Nothing is sent twice in here: an answer that was lost may have been a yes. Who asks looks at the node again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec
from keystoneauth1 import exceptions, loading
from keystoneauth1.adapter import Adapter
from oslo_config import cfg
from prometheus_client import Counter

from moorage.core import context, paging
from moorage.core.config import ConfigError
from moorage.core.microversions import Version, text
from moorage.core.paging import EndlessListError, MarkerGoneError, Page
from moorage.drivers.ironic.api.record import (
    FIELDS,
    MORE_FIELDS,
    PORT_FIELDS,
    PORT_GROUP_FIELDS,
    RESCUE,
    RESERVATION_FIELDS,
    MachinePort,
    MachinePortGroup,
    NodeRecord,
    ReservationRecord,
)

GROUP = "ironic"
OLDEST = (1, 37)
"""The version from which nodes have traits: without them nothing can be scheduled rightly."""
NEWEST = (1, 82)
"""The newest one that we know."""
FILTERS = {"conductor_group": (1, 46), "shard": (1, 82)}
"""By what nodes can be listed, each with the version that knows it."""
RESERVATIONS = (1, 52)
"""The version from which nodes can be reserved."""
SORTED_DETAIL = (1, 43)
"""The version from which a listing tells all of its nodes, the time of their last change included."""
PAGE = 1000
"""What we ask for; Ironic may give less."""
_TIMEOUT = 60.0

# Ironic's API gives a status and a sentence, but no code: here, and nowhere else, a sentence is read for its
# meaning, and becomes a type.
_BUSY = re.compile(r"is locked|state transition|Unable to establish connection", re.IGNORECASE)
_CHANGED = re.compile(
    r"Couldn't apply patch|while it is in state|can only be made protected|is protected and", re.IGNORECASE
)

REQUESTS = Counter(
    "moorage_ironic_requests_total", "Requests to Ironic, by method and status.", ["method", "status"]
)

Patch = Sequence[Mapping[str, Any]]
R = TypeVar("R", NodeRecord, ReservationRecord, MachinePort, MachinePortGroup)


class IronicError(Exception):
    """Ironic said no; `status` is 0 if it said nothing at all."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class BusyError(IronicError):
    """Not now: the node is locked, a limit is reached, a conductor or the API is away. Look again later."""


class ChangedError(IronicError):
    """The node is not any more what it was when we looked."""


class _Page(msgspec.Struct):
    nodes: list[NodeRecord]


class _Reservations(msgspec.Struct):
    allocations: list[ReservationRecord]


class _Ports(msgspec.Struct):
    ports: list[MachinePort]


class _PortGroups(msgspec.Struct):
    portgroups: list[MachinePortGroup]


class _Time(msgspec.Struct):
    updated_at: datetime | None = None


class _Times(msgspec.Struct):
    nodes: list[_Time]


class ConsoleState(msgspec.Struct):
    console_enabled: bool = False
    console_info: dict[str, Any] | None = None


class NodeChange(NamedTuple):
    record: NodeRecord
    at: datetime | None
    """None if nothing has changed since the node was enrolled."""


_PAGE = msgspec.json.Decoder(_Page)
_TIMES = msgspec.json.Decoder(_Times)
_RESERVATIONS = msgspec.json.Decoder(_Reservations)
_PORTS = msgspec.json.Decoder(_Ports)
_PORT_GROUPS = msgspec.json.Decoder(_PortGroups)
_RESERVATION = msgspec.json.Decoder(ReservationRecord)
_NODE = msgspec.json.Decoder(NodeRecord)


class IronicClient:
    def __init__(self, adapter: Adapter, timeout: float = _TIMEOUT) -> None:
        self._adapter = adapter
        self._timeout = timeout
        self._version: Version | None = None

    def version(self) -> Version:
        """The version that both sides speak, the newest such; asked for once."""
        if self._version is None:
            answer = self._send("GET", "/v1", None, "")
            newest = _version(answer.headers.get("X-OpenStack-Ironic-API-Maximum-Version", "1.1"))
            if newest < OLDEST:
                raise IronicError(
                    f"Ironic's API is too old: it knows {text(newest)}, {text(OLDEST)} is needed"
                )
            self._version = min(newest, NEWEST)
        return self._version

    def pages(
        self, filters: Mapping[str, str], more: Mapping[str, Version] | None = None
    ) -> Iterator[list[NodeRecord]]:
        """All nodes that match, a page at a time, with `more` fields than are needed to use them.

        The address of the next page that Ironic offers forgets the filters, so we make our own.
        """
        asked = {**FIELDS, **(more or {})}
        fields = ",".join(name for name, since in asked.items() if since <= self.version())
        query = {**filters, "fields": fields, "limit": str(PAGE)}
        return self._all("nodes", query, lambda answer: _PAGE.decode(answer).nodes)

    def newest_changes(self, limit: int) -> Iterator[list[NodeChange]]:
        """All nodes, the one that changed last first, so many a page; read no more of them than you need.

        A node that changes meanwhile may come again. `MarkerGoneError` if nobody can tell what comes next:
        the last node of a page is gone, or has never changed, after which Ironic leaves some out.

        It leaves some out, too, or repeats them, where its PostgreSQL has another time zone than UTC. So each
        page is asked for from the last node but one of the page before: if it does not begin with the last,
        it is not the next page.
        """
        query = {"detail": "true", "sort_key": "updated_at", "sort_dir": "desc", "limit": str(limit)}
        page = self._changes(query, None)
        yield page
        while page:
            last = page[-1]
            marker = page[-2].record.uuid if len(page) > 1 else last.record.uuid
            if len(page) == 1 or last.at is None:
                raise MarkerGoneError(marker)
            page = self._changes(query, marker)
            if not page or page[0].record.uuid != last.record.uuid:
                raise MarkerGoneError(marker)
            if len(page) == 1:
                return
            yield page[1:]

    def _changes(self, query: Mapping[str, str], marker: str | None) -> list[NodeChange]:
        answer = self._ask_page("nodes", query, marker)
        page, times = _PAGE.decode(answer).nodes, _TIMES.decode(answer).nodes
        return [
            NodeChange(record.as_listed(), time.updated_at) for record, time in zip(page, times, strict=True)
        ]

    def node(self, uuid: str) -> NodeRecord | None:
        """None if there is no such node: only this question tells that for sure."""
        fields = [name for name, since in (FIELDS | MORE_FIELDS).items() if since <= self.version()]
        query = urlencode({"fields": ",".join(fields)})
        try:
            return _NODE.decode(self._ask("GET", f"/v1/nodes/{uuid}?{query}"))
        except IronicError as error:
            if error.status == 404:
                return None
            raise

    def node_with(self, server_uuid: str) -> str | None:
        """The node that says that it has this server."""
        query = urlencode({"instance_uuid": server_uuid, "fields": "uuid"})
        found = _PAGE.decode(self._ask("GET", f"/v1/nodes?{query}")).nodes
        return found[0].uuid if found else None

    def change(self, uuid: str, patch: Patch) -> None:
        self._ask("PATCH", f"/v1/nodes/{uuid}", list(patch))

    def provision(self, uuid: str, target: str) -> None:
        """Brings nothing along: what is done to the node is what is written down there."""
        self._ask("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": target})

    def rescue(self, uuid: str, password: str) -> None:
        """Of all orders the one that brings something along: Ironic takes a password in no other way."""
        body = {"target": RESCUE, "rescue_password": password}
        self._ask("PUT", f"/v1/nodes/{uuid}/states/provision", body, secret=True)

    def set_power(self, uuid: str, target: str) -> None:
        self._ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": target})

    def inject_nmi(self, uuid: str) -> None:
        self._ask("PUT", f"/v1/nodes/{uuid}/management/inject_nmi", {})

    def console(self, uuid: str) -> ConsoleState:
        return msgspec.json.decode(self._ask("GET", f"/v1/nodes/{uuid}/states/console"), type=ConsoleState)

    def switch_on_console(self, uuid: str) -> None:
        self._ask("PUT", f"/v1/nodes/{uuid}/states/console", {"enabled": True})

    def vifs(self, uuid: str) -> set[str]:
        """The ports that are attached to a node."""
        answer = msgspec.json.decode(self._ask("GET", f"/v1/nodes/{uuid}/vifs"))
        return {vif["id"] for vif in answer["vifs"]}

    def attach(self, uuid: str, port_id: str) -> None:
        self._ask("POST", f"/v1/nodes/{uuid}/vifs", {"id": port_id})

    def detach(self, uuid: str, port_id: str) -> None:
        self._ask("DELETE", f"/v1/nodes/{uuid}/vifs/{port_id}")

    def ports(self, uuid: str) -> list[MachinePort]:
        """The network cards of a node, those in groups included."""
        query = {"node": uuid, "fields": ",".join(PORT_FIELDS), "limit": str(PAGE)}
        pages = self._all("ports", query, lambda answer: _PORTS.decode(answer).ports)
        return [port for page in pages for port in page]

    def port_groups(self, uuid: str) -> list[MachinePortGroup]:
        query = {"node": uuid, "fields": ",".join(PORT_GROUP_FIELDS), "limit": str(PAGE)}
        pages = self._all("portgroups", query, lambda answer: _PORT_GROUPS.decode(answer).portgroups)
        return [group for page in pages for group in page]

    def objections(self, uuid: str, interfaces: Sequence[str]) -> dict[str, str]:
        """What these interfaces of a node have against a deployment, by interface."""
        answer = msgspec.json.decode(self._ask("GET", f"/v1/nodes/{uuid}/validate"))
        return {
            name: str(answer[name].get("reason"))
            for name in interfaces
            if name in answer and answer[name].get("result") is False
        }

    def reservations(self) -> Iterator[ReservationRecord]:
        """All of them, whoever made them."""
        query = {"fields": ",".join(RESERVATION_FIELDS), "limit": str(PAGE)}
        for page in self._all("allocations", query, lambda answer: _RESERVATIONS.decode(answer).allocations):
            yield from page

    def reservation(self, uuid: str) -> ReservationRecord | None:
        """None if there is none, or we may not know of any: then we have made none."""
        if self.version() < RESERVATIONS:
            return None
        try:
            return _RESERVATION.decode(self._ask("GET", f"/v1/allocations/{uuid}"))
        except IronicError as error:
            if error.status in (403, 404):
                return None
            raise

    def reserve(self, wanted: Mapping[str, Any]) -> None:
        """Ask for a reservation, in Ironic's words; what became of it is to be looked up."""
        self._ask("POST", "/v1/allocations", dict(wanted))

    def release(self, uuid: str) -> None:
        """Drop a reservation. One that is gone is fine."""
        try:
            self._ask("DELETE", f"/v1/allocations/{uuid}")
        except IronicError as error:
            if error.status != 404:
                raise

    def _all(
        self, collection: str, query: Mapping[str, str], decode: Callable[[bytes], list[R]]
    ) -> Iterator[list[R]]:
        """Each of them once, a page at a time; an entry that is deleted while we read hides no other."""

        def read(marker: str | None) -> Page[R]:
            found = decode(self._ask_page(collection, query, marker))
            return Page(found, found[-1].uuid if found else None)

        try:
            yield from paging.pages(read, lambda record: record.uuid)
        except EndlessListError as error:
            raise IronicError(f"Ironic's list of {collection} has no end: {error}") from error

    def _ask_page(self, collection: str, query: Mapping[str, str], marker: str | None) -> bytes:
        asked = query if marker is None else {**query, "marker": marker}
        try:
            return self._ask("GET", f"/v1/{collection}?{urlencode(asked)}")
        except IronicError as error:
            if marker is None or error.status not in (400, 404):
                raise
            raise MarkerGoneError(marker) from error

    def _ask(self, method: str, path: str, body: Any = None, *, secret: bool = False) -> bytes:
        answer = self._send(method, path, body, text(self.version()), secret=secret)
        content: bytes = answer.content
        return content

    def _send(self, method: str, path: str, body: Any, version: str, *, secret: bool = False) -> Any:
        """What is `secret` is in no log, whatever is logged of others."""
        headers = {
            **context.request_headers(),
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        if version:
            headers["X-OpenStack-Ironic-API-Version"] = version
        try:
            answer = self._adapter.request(
                path,
                method,
                data=None if body is None else msgspec.json.encode(body),
                headers=headers,
                raise_exc=False,
                timeout=self._timeout,
                connect_retries=0,
                log=not secret,
            )
        except exceptions.ClientException as error:
            REQUESTS.labels(method, "none").inc()
            raise BusyError(f"Ironic does not answer: {error}") from error
        REQUESTS.labels(method, str(answer.status_code)).inc()
        if answer.status_code < 400:
            return answer
        reason = _reason(answer)
        told = f"Ironic answered {answer.status_code} to {method} {path.partition('?')[0]}: {reason}"
        raise _kind(method, answer.status_code, reason)(told, answer.status_code)


def connect(conf: cfg.ConfigOpts) -> IronicClient:
    """The Ironic that `[ironic]` names, in keystoneauth's words; nothing is sent yet."""
    loading.register_auth_conf_options(conf, GROUP)
    loading.register_session_conf_options(conf, GROUP)
    loading.register_adapter_conf_options(conf, GROUP)
    conf.set_default("service_type", "baremetal", group=GROUP)
    try:
        auth = loading.load_auth_from_conf_options(conf, GROUP)
        session = loading.load_session_from_conf_options(conf, GROUP, auth=auth)
        adapter = loading.load_adapter_from_conf_options(conf, GROUP, session=session, auth=auth)
    except (exceptions.ClientException, cfg.Error) as error:
        raise ConfigError(f"[{GROUP}]: {error}") from error
    if auth is None:
        raise ConfigError(f"[{GROUP}] does not say how to reach Ironic: set auth_type and what it needs")
    return IronicClient(adapter)


def _kind(method: str, status: int, sentence: str) -> type[IronicError]:
    """What a refusal means; a 500 to an order often means that it can't be done."""
    if status > 500 or (status == 500 and method == "GET"):
        return BusyError
    if status in (409, 500) and _BUSY.search(sentence):
        return BusyError
    return ChangedError if _CHANGED.search(sentence) else IronicError


def _version(written: str) -> Version:
    major, _, minor = written.partition(".")
    return int(major), int(minor)


def _reason(answer: Any) -> str:
    """Ironic wraps its sentence once or twice, depending on who says it."""
    try:
        found = answer.json()["error_message"]
        if isinstance(found, str):
            found = msgspec.json.decode(found)
        return " ".join(str(found["faultstring"]).split())
    except (ValueError, LookupError, TypeError, msgspec.MsgspecError):
        return " ".join(str(answer.text).split())[:500]
