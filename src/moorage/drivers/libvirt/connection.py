"""The line to libvirtd: opened when it is needed, and again after libvirtd was restarted.

Guests don't notice such a restart, and neither shall calls: whatever is asked is asked again for some time.
So what is asked looks first at what is there.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

import libvirt
from prometheus_client import Counter

from moorage.drivers.contract import DriverClosedError, DriverError

LOG = logging.getLogger(__name__)
LOST = Counter(
    "moorage_libvirt_connections_lost_total", "Times that libvirtd was not there when it was needed."
)

T = TypeVar("T")
Handler = Callable[[Any, Any, int, int], None]
"""Gets the UUID's domain, an event and its detail, in the thread of libvirt's events."""

KEEPALIVE = (5, 3)
"""Seconds between two signs of life, and how many may be missing: else calls to a dead libvirtd never end."""
_PAUSE = 0.2
_GONE = (
    libvirt.VIR_ERR_SYSTEM_ERROR,
    libvirt.VIR_ERR_INTERNAL_ERROR,
    libvirt.VIR_ERR_RPC,
    libvirt.VIR_ERR_NO_CONNECT,
)
_LINE = (libvirt.VIR_FROM_REMOTE, libvirt.VIR_FROM_RPC, libvirt.VIR_FROM_STREAMS)


class LibvirtUnavailableError(DriverError):
    """No libvirtd answers here; another host may have one."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retry_elsewhere=True)


class _EventLoop:
    """Libvirt has one for the whole process, and it has to run before the first connection is opened."""

    _lock = threading.Lock()
    _started = False

    @classmethod
    def start(cls) -> None:
        with cls._lock:
            if not cls._started:
                libvirt.registerErrorHandler(lambda *_: None, None)  # they come as exceptions, too
                libvirt.virEventRegisterDefaultImpl()
                threading.Thread(target=cls._run, name="libvirt-events", daemon=True).start()
                cls._started = True

    @staticmethod
    def _run() -> None:
        while True:
            try:
                libvirt.virEventRunDefaultImpl()
            except libvirt.libvirtError as error:
                LOG.warning("libvirt's events: %s", error)


class Connection:
    def __init__(self, uri: str, patience: float) -> None:
        """`patience`: for how many seconds a call waits for a libvirtd that is away."""
        self._uri = uri
        self._patience = patience
        self._lock = threading.Lock()
        self._open: Any = None
        self._closed = threading.Event()
        self._on_lifecycle: list[Handler] = []
        self._on_open: list[Callable[[Any], None]] = []
        self._on_loss: list[Callable[[], None]] = []
        _EventLoop.start()

    def on_lifecycle(self, handler: Handler) -> None:
        """From now on, and on each later connection."""
        with self._lock:
            self._on_lifecycle.append(handler)
            if self._open is not None:
                self._register(self._open, handler)

    def on_open(self, handler: Callable[[Any], None]) -> None:
        """Each new connection, before anybody asks anything over it."""
        self._on_open.append(handler)

    def on_loss(self, handler: Callable[[], None]) -> None:
        """As soon as libvirtd has hung up, at times twice; in a thread of its own, since libvirt's must not
        wait for anybody."""
        self._on_loss.append(handler)

    def current(self) -> Any:
        """One to look at the host with; LibvirtUnavailableError if there is none now."""
        return self.run(lambda connection: connection, patience=0.0)

    def run(self, call: Callable[[Any], T], patience: float | None = None) -> T:
        """Ask something; what libvirt refuses is raised as it says it."""
        deadline = time.monotonic() + (self._patience if patience is None else patience)
        for attempt in count():
            if self._closed.is_set():
                raise DriverClosedError
            connection: Any = None
            try:
                connection = self._connected()
                return call(connection)
            except libvirt.libvirtError as error:
                if connection is not None and not self._is_lost(connection, error):
                    raise
                LOST.inc()
                LOG.warning("libvirtd does not answer: %s", error)
                if connection is not None:
                    self._drop(connection)
                    self._tell_loss()
                if attempt and time.monotonic() >= deadline:
                    raise LibvirtUnavailableError(f"libvirtd does not answer: {error}") from error
            self._closed.wait(_PAUSE if attempt else 0.0)
        raise AssertionError("there is always another attempt")

    def close(self) -> None:
        self._closed.set()
        self._drop(self._open)

    def _connected(self) -> Any:
        with self._lock:
            if self._open is None:
                opened = libvirt.open(self._uri)
                opened.setKeepAlive(*KEEPALIVE)
                opened.registerCloseCallback(self._hung_up, None)
                for look in self._on_open:
                    look(opened)
                for handler in self._on_lifecycle:
                    self._register(opened, handler)
                self._open = opened
            return self._open

    def _register(self, connection: Any, handler: Handler) -> None:
        def told(_: Any, domain: Any, event: int, detail: int, __: Any) -> None:
            handler(connection, domain, event, detail)

        connection.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, told, None)

    def _hung_up(self, _: Any, reason: int, __: Any) -> None:
        if reason != libvirt.VIR_CONNECT_CLOSE_REASON_CLIENT:
            self._tell_loss()

    def _tell_loss(self) -> None:
        for handler in self._on_loss:
            threading.Thread(target=handler, name="libvirt-loss", daemon=True).start()

    def _drop(self, connection: Any) -> None:
        with self._lock:
            if connection is None or self._open is not connection:
                return
            self._open = None
        try:
            with contextlib.suppress(libvirt.libvirtError):  # it has been told already
                connection.unregisterCloseCallback()  # else it would stay open
            connection.close()
        except libvirt.libvirtError as error:
            LOG.debug("closing a lost connection: %s", error)

    @staticmethod
    def _is_lost(connection: Any, error: Any) -> bool:
        if error.get_error_code() in _GONE and error.get_error_domain() in _LINE:
            return True
        try:
            return not connection.isAlive()
        except libvirt.libvirtError:
            return True
