"""Network namespaces that stand for hosts and guests: made for a test, gone with it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import selectors
import struct
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_NEW_NETWORK = 0x40000000
_TUNSETIFF = 0x400454CA
_TAP_WITHOUT_HEADER = 0x1002
_LARGEST = 65_536
_LIBC = ctypes.CDLL(None, use_errno=True)


class Namespace:
    def __init__(self, name: str, path: Path | None = None) -> None:
        """`path` is where the kernel shows it, if `ip` did not make it."""
        self.name = name
        self._path = path or Path("/run/netns", name)

    @property
    def prefix(self) -> tuple[str, ...]:
        """Before a command that shall run in it."""
        return ("nsenter", f"--net={self._path}", "--")

    def run(self, *words: str, check: bool = True) -> str:
        ended = subprocess.run(
            [*self.prefix, *words], capture_output=True, text=True, check=False, timeout=60
        )
        if check and ended.returncode:
            raise AssertionError(f"{words}: {ended.stdout}{ended.stderr}")
        return ended.stdout

    def succeeds(self, *words: str) -> bool:
        ended = subprocess.run([*self.prefix, *words], capture_output=True, check=False, timeout=60)
        return ended.returncode == 0

    def call(self, work: Callable[[], T]) -> T:
        """In a thread of this process that is in the namespace: what it opens stays so."""

        def enter() -> T:
            with self._path.open() as there:
                if _LIBC.setns(there.fileno(), _NEW_NETWORK):
                    raise OSError(ctypes.get_errno(), "setns")
            return work()

        with ThreadPoolExecutor(1) as own_thread:
            return own_thread.submit(enter).result()

    def open_tap(self, device: str) -> int:
        """As QEMU does: what is written goes to the device's network, what is read comes from there."""

        def work() -> int:
            tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", device.encode(), _TAP_WITHOUT_HEADER))
            return tap

        return self.call(work)


def can_be_made() -> bool:
    """By root, where the kernel allows it."""
    if os.geteuid() != 0 or not Path("/dev/net/tun").exists():
        return False
    try:
        with namespace():
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def namespace(kind: str = "host") -> Iterator[Namespace]:
    name = f"mrg-{kind}-{uuid.uuid4().hex[:8]}"
    subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield Namespace(name)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@contextmanager
def cable(one: Namespace, address: str, other: Namespace, other_address: str) -> Iterator[None]:
    """Between two hosts, each with its address on it (`10.0.0.1/24`)."""
    ends = [f"c{uuid.uuid4().hex[:8]}" for _ in range(2)]
    subprocess.run(
        ["ip", "-n", one.name, "link", "add", ends[0], "type", "veth", "peer", ends[1], "netns", other.name],
        check=True,
    )
    for where, end, with_address in ((one, ends[0], address), (other, ends[1], other_address)):
        where.run("ip", "addr", "add", with_address, "dev", end)
        where.run("ip", "link", "set", end, "up")
    yield
    one.run("ip", "link", "del", ends[0], check=False)


@contextmanager
def guest(host: Namespace, tap: str, mac: str) -> Iterator[Namespace]:
    """A namespace whose `eth0` is the other end of the host's tap: a guest without a machine around it."""
    with namespace("guest") as inside:
        outer, inner = host.open_tap(tap), inside.open_tap("eth0")
        inside.run("ip", "link", "set", "eth0", "address", mac, "up")
        ending, wake = os.pipe()
        pump = threading.Thread(target=_pump, args=(outer, inner, ending))
        pump.start()
        try:
            yield inside
        finally:
            os.write(wake, b".")
            pump.join()
            for descriptor in (outer, inner, ending, wake):
                os.close(descriptor)


def _pump(outer: int, inner: int, ending: int) -> None:
    with selectors.DefaultSelector() as selector:
        for descriptor in (outer, inner, ending):
            selector.register(descriptor, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in selector.select()}
            if ending in ready:
                return
            for source, target in ((outer, inner), (inner, outer)):
                if source in ready:
                    _copy(source, target)


def _copy(source: int, target: int) -> None:
    """A device that is down takes nothing, as a cable that is out."""
    try:
        os.write(target, os.read(source, _LARGEST))
    except OSError:
        return
