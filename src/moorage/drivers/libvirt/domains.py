"""Domains of libvirt with our mark; those without it are left alone, whatever their UUID is."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from xml.etree.ElementTree import Element

import libvirt

from moorage.drivers.contract import CRASHED, NO_STATE, PAUSED, RUNNING, SHUT_DOWN, SUSPENDED, DriverError
from moorage.drivers.libvirt.connection import Connection
from moorage.drivers.libvirt.domain import live_xml, mark
from moorage.drivers.libvirt.forgotten_guests import ForgottenGuests
from moorage.drivers.libvirt.start_gate import StartGate
from moorage.drivers.libvirt.stuck_starts import STARTING, StuckStartError, StuckStarts

LOG = logging.getLogger(__name__)
T = TypeVar("T")

_POWER = {
    libvirt.VIR_DOMAIN_NOSTATE: NO_STATE,
    libvirt.VIR_DOMAIN_RUNNING: RUNNING,
    libvirt.VIR_DOMAIN_BLOCKED: RUNNING,
    libvirt.VIR_DOMAIN_PAUSED: PAUSED,
    libvirt.VIR_DOMAIN_SHUTDOWN: SHUT_DOWN,
    libvirt.VIR_DOMAIN_SHUTOFF: SHUT_DOWN,
    libvirt.VIR_DOMAIN_CRASHED: CRASHED,
    libvirt.VIR_DOMAIN_PMSUSPENDED: SUSPENDED,
}
_UNDEFINE = (
    libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
    | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
    | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
    | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
)
_OFF = (libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_CRASHED, libvirt.VIR_DOMAIN_NOSTATE)
_STARTING_SECONDS = 60.0
_LOOKS = 0.1
_FORCE_ATTEMPTS = 3
_REMOVALS = 50


class Domains:
    def __init__(
        self,
        connection: Connection,
        node_uuid: str,
        gate: StartGate,
        stuck: StuckStarts,
        forgotten: ForgottenGuests,
    ) -> None:
        self.connection = connection
        self.gate = gate
        self.stuck = stuck
        self._forgotten = forgotten
        self._node_uuid = node_uuid
        connection.on_open(self._look_for_forgotten)

    def powers(self) -> dict[str, int]:
        """Of all servers that are here. Who asks does not wait for a libvirtd that is away."""

        def ask(connection: Any) -> dict[str, int]:
            found = {}
            for domain in connection.listAllDomains():
                with contextlib.suppress(libvirt.libvirtError):  # it went away while we looked
                    if self._is_ours(domain):
                        is_stuck = self.stuck.includes(domain)
                        found[domain.UUIDString()] = SHUT_DOWN if is_stuck else self._power(domain)
            return found

        with speaking("list the servers"):
            return self.connection.run(ask, patience=0.0)

    def power(self, server_uuid: str) -> int:
        """DriverError if it is not here."""
        found = self.power_if_there(server_uuid)
        if found is None:
            raise DriverError(f"server {server_uuid} is not on this host")
        return found

    def power_if_there(self, server_uuid: str) -> int | None:
        return self.if_there(server_uuid, self._power)

    def is_forgotten(self, server_uuid: str) -> bool:
        """Whether it runs, and libvirtd does not know."""
        return self._forgotten.pid(server_uuid) is not None

    def if_there(self, server_uuid: str, call: Callable[[Any], T]) -> T | None:
        """What `call` says of a domain; None if it is not here, or leaves while it is looked at."""

        def ask(connection: Any) -> T | None:
            domain = self._find(connection, server_uuid)
            with _unless_gone():
                return None if domain is None else call(domain)
            return None

        with speaking("look at the server"):
            return self.connection.run(ask)

    def on(self, server_uuid: str, what: str, call: Callable[[Any], T]) -> T:
        """Do something with a domain that is here. It may be done twice, so it looks first what is so."""

        def ask(connection: Any) -> T:
            domain = self._find(connection, server_uuid)
            if domain is None:
                raise DriverError(f"server {server_uuid} is not on this host")
            self._forgotten.require_known(server_uuid)
            return call(domain)

        with speaking(f"{what} the server"):
            return self.connection.run(ask)

    def live(self, server_uuid: str, *, inactive: bool = False) -> Element:
        """Its XML as it runs now, or as it would start."""
        flags = libvirt.VIR_DOMAIN_XML_INACTIVE if inactive else 0
        return live_xml.parse(self.on(server_uuid, "look at", lambda domain: str(domain.XMLDesc(flags))))

    def name_for(self, server_uuid: str, wanted: str) -> str:
        """The one that it has, since that can't change; or the wanted one, unless another domain has that: of
        another cloud, say."""

        def ask(connection: Any) -> str:
            known = self._find(connection, server_uuid)
            if known is not None:
                return str(known.name())
            try:
                connection.lookupByName(wanted)
            except libvirt.libvirtError as error:
                if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                    return wanted
                raise
            return f"{wanted}-{server_uuid}"

        with speaking("look for the server's name"):
            return self.connection.run(ask)

    def define(self, server_uuid: str, xml: str) -> None:
        """A late call says what the server's record says: without a record nobody comes here."""

        def ask(connection: Any) -> None:
            self._find(connection, server_uuid)  # nobody else's
            connection.defineXML(xml)

        with speaking("define the server"):
            self.connection.run(ask)

    def start(self, server_uuid: str, *, paused: bool = False) -> None:
        """Start one that is off; goes on where it was, if its memory was saved.

        Its processors run only after a second look at the permit: QEMU may take long to start. Late: refused
        by libvirtd; if libvirtd itself was late, it stands still, and is removed with all that is a stray's.
        """

        def call(domain: Any) -> None:
            if not domain.isActive():
                self.gate.require(server_uuid)
                domain.createWithFlags(libvirt.VIR_DOMAIN_START_PAUSED)
            if not paused:
                self.gate.go_on(server_uuid, domain)

        self.on(server_uuid, "start", call)

    def go_on(self, server_uuid: str) -> None:
        """Runs already: nothing happens."""
        self.on(server_uuid, "unpause", partial(self.gate.go_on, server_uuid))

    def is_active(self, server_uuid: str) -> bool:
        """Whether there is a process for it. One that is just being started is waited for: an agent that has
        died since may have ordered that."""
        deadline = time.monotonic() + _STARTING_SECONDS
        while time.monotonic() < deadline:
            state = self._state_if_there(server_uuid)
            if self._is_stuck(server_uuid, state):
                raise StuckStartError(self.on(server_uuid, "look at", lambda domain: str(domain.name())))
            if state != STARTING:
                return self.is_forgotten(server_uuid) or (state is not None and state[0] not in _OFF)
            time.sleep(_LOOKS)
        raise DriverError(f"server {server_uuid} does not get started", retry_elsewhere=True)

    def _state_if_there(self, server_uuid: str) -> tuple[int, int] | None:
        return self.if_there(server_uuid, lambda domain: tuple(domain.state()))

    def _is_stuck(self, server_uuid: str, state: tuple[int, int] | None) -> bool:
        return state == STARTING and bool(self.if_there(server_uuid, self.stuck.includes))

    def force_off(self, server_uuid: str) -> None:
        """Now, whatever it does, and whatever is done with it; not there or off already: nothing happens.

        It is called in a step of a call, so that none comes late.
        """

        def ask(connection: Any) -> None:
            domain = self._find(connection, server_uuid)
            if domain is None or self.stuck.includes(domain):
                return
            self._forgotten.end(server_uuid, str(domain.name()))
            for attempt in range(_FORCE_ATTEMPTS):
                with contextlib.suppress(libvirt.libvirtError):  # none is at work: else we would wait for it
                    domain.abortJob()
                try:
                    if domain.isActive():
                        domain.destroy()
                    return
                except libvirt.libvirtError as error:
                    if not _is_active(domain):
                        return
                    if attempt == _FORCE_ATTEMPTS - 1:
                        raise
                    LOG.warning("server %s can't be switched off yet: %s", server_uuid, error)
                    time.sleep(1.0)

        with speaking("switch off the server"):
            self.connection.run(ask)

    def remove(self, server_uuid: str) -> None:
        """Off and undefined; again, if an order to start it was on its way: it would run undefined.

        Of one that is stuck there is nothing but its name, which goes once libvirtd was restarted.
        """
        for _ in range(_REMOVALS):
            self.force_off(server_uuid)
            self._undefine(server_uuid)
            state = self._state_if_there(server_uuid)
            if state is None or self._is_stuck(server_uuid, state):
                return
            time.sleep(_LOOKS)
        raise DriverError(f"server {server_uuid} does not go away")

    def _undefine(self, server_uuid: str) -> None:
        def ask(connection: Any) -> None:
            domain = self._find(connection, server_uuid)
            if domain is not None and not self.stuck.includes(domain):
                with _unless_gone():
                    if domain.isPersistent():
                        domain.undefineFlags(_UNDEFINE)

        with speaking("undefine the server"):
            self.connection.run(ask)

    def remove_unstuck(self, is_known: Callable[[str], bool]) -> None:
        """Remove those that are off by now, and whose server was removed meanwhile."""
        for name in self.stuck.over():
            server_uuid = self.connection.run(partial(_uuid_of, name))
            if server_uuid is not None and not is_known(server_uuid):
                self.remove(server_uuid)
            self.stuck.forget(name)

    def machine_type(self, architecture: str, machine: str, virt_type: str) -> str:
        """The version that a machine type without one stands for today."""

        def ask(connection: Any) -> str:
            found = connection.getDomainCapabilities(None, architecture, machine, virt_type, 0)
            return live_xml.parse(found).findtext("machine") or machine

        with speaking(f"use the machine type {machine}"):
            return self.connection.run(ask)

    def _look_for_forgotten(self, connection: Any) -> None:
        off = []
        for domain in connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_INACTIVE):
            with contextlib.suppress(libvirt.libvirtError):  # it went away while we looked
                if self._is_ours(domain):
                    off.append(str(domain.UUIDString()))
        self._forgotten.look(off)

    def _power(self, domain: Any) -> int:
        return RUNNING if self.is_forgotten(domain.UUIDString()) else _power(domain)

    def _find(self, connection: Any, server_uuid: str) -> Any:
        try:
            domain = connection.lookupByUUIDString(server_uuid)
        except libvirt.libvirtError as error:
            if error.get_error_code() in (libvirt.VIR_ERR_NO_DOMAIN, libvirt.VIR_ERR_INVALID_ARG):
                return None
            raise
        with _unless_gone():
            if self._is_ours(domain):
                return domain
            raise DriverError(f"domain {server_uuid} of this libvirt is not this host's")
        return None

    def _is_ours(self, domain: Any) -> bool:
        try:
            found = domain.metadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, mark.NAMESPACE)
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN_METADATA:
                return False
            raise
        ours = mark.parse(found)
        return ours is not None and ours.node_uuid == self._node_uuid


@contextmanager
def speaking(what: str) -> Iterator[None]:
    """What libvirt refuses is this host's failure: another may do."""
    try:
        yield
    except libvirt.libvirtError as error:
        raise DriverError(f"libvirt could not {what}: {error}", retry_elsewhere=True) from error


def _power(domain: Any) -> int:
    state, reason = domain.state()
    power = _POWER.get(state, NO_STATE)
    if power == SHUT_DOWN and domain.hasManagedSaveImage():
        return SUSPENDED
    if power == PAUSED and (reason == libvirt.VIR_DOMAIN_PAUSED_MIGRATION or not domain.isPersistent()):
        return NO_STATE  # it comes from another host, and is not there yet
    return power


def _uuid_of(name: str, connection: Any) -> str | None:
    with _unless_gone():
        return str(connection.lookupByName(name).UUIDString())
    return None


def _is_active(domain: Any) -> bool:
    with _unless_gone():
        return bool(domain.isActive())
    return False


@contextmanager
def _unless_gone() -> Iterator[None]:
    try:
        yield
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
            raise
