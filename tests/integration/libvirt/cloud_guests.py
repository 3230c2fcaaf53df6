"""Real guests of a cloud: what the official client says of them, and how one reaches them from their host."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from openstack.config import OpenStackConfig
from openstack.connection import Connection

from tests.lab.client.openstack import openstack, order
from tests.lab.libvirt import programs
from tests.lab.libvirt.hosts import LibvirtHost
from tests.support import debian
from tests.support.guest_image import GuestImage, guest_image
from tests.support.processes import wait_until
from tests.support.websockets import WebSocketClient

BOOT_SECONDS = 240.0
"""On a machine that has much else to do."""
LONGEST_SILENCE = 5.0
"""Of a guest that moves; on a machine with nothing else to do it is one second."""
_PING_SECONDS = 0.2
_TICK = re.compile(r"guest: tick (\d+) [\d.]+\r?\n")
_SSH = (
    *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"),
    *("-o", "LogLevel=ERROR", "-o", "HostKeyAlgorithms=ssh-ed25519", "-o", "ConnectTimeout=60"),
    *("-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=6"),
)


def needed_programs() -> GuestImage:
    """Skips the test where one can be neither found nor made."""
    try:
        programs.install()
        debian.install("nftables", "dnsmasq-base", "openssh-client", "iputils-ping")
        return guest_image()
    except (debian.Unavailable, RuntimeError) as missing:
        pytest.skip(str(missing))


@contextmanager
def network_directory() -> Iterator[Path]:
    """For `[libvirt] network_directory`: hosts of other tests have the same names."""
    directory = Path(tempfile.mkdtemp(prefix="mrg-", dir="/run"))  # dnsmasq is nobody
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def environment() -> dict[str, str]:
    """Of an agent: it finds libvirt's binding."""
    return {"PYTHONPATH": str(programs.binding())}


@dataclass(frozen=True)
class GuestCloud:
    clouds_file: Path
    directory: Path
    user: str = "moorage"
    """Whose cloud of the file it is."""

    def ask(self, *words: str) -> Any:
        return openstack(self.clouds_file, self.user, *words)

    def order(self, *words: str) -> str:
        return order(self.clouds_file, self.user, *words)

    def furnish(self) -> None:
        """With a flavor that is enough for the guest, `m1.guest`, and a key."""
        self.add_flavor()
        self.add_key()

    def add_flavor(self) -> None:
        self.ask("flavor", "create", "--vcpus", "1", "--ram", "192", "--disk", "1", "m1.guest")

    def add_key(self) -> None:
        """The user's, `mine`."""
        generate = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)]
        subprocess.run(generate, check=True, stdin=subprocess.DEVNULL)
        self.order("keypair", "create", "--public-key", f"{self.key}.pub", "mine")

    def add_image(self, image: GuestImage) -> None:
        """As `moorage-guest`, for everybody."""
        shape = ("--disk-format", "qcow2", "--container-format", "bare", "--public")
        self.ask("image", "create", "--file", str(image.disk), *shape, "moorage-guest")

    @property
    def key(self) -> Path:
        return self.directory / "key"

    def boot(self, name: str, *more: str) -> dict[str, Any]:
        """With the client's own patience."""
        shown = self.create(name, *more, "--wait")
        assert shown["status"] == "ACTIVE", shown
        return shown

    def create(self, name: str, *more: str, image: str = "moorage-guest") -> dict[str, Any]:
        wanted = ("--flavor", "m1.guest", "--image", image, "--key-name", "mine")
        shown: dict[str, Any] = self.ask("server", "create", *wanted, *more, name)
        return shown

    def show(self, name: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.ask("server", "show", name)
        return shown

    def status(self, name: str) -> str:
        return str(self.show(name)["status"])

    def await_status(self, name: str, status: str, seconds: float = 120.0) -> None:
        def reached() -> bool:
            return bool(self._api.get(f"/servers/{self._id(name)}").json()["server"]["status"] == status)

        wait_until(reached, f"{name} to be {status}", seconds)

    @cached_property
    def _api(self) -> Any:
        """For whoever waits: to start a client again and again would take the processors from the guests."""
        found = OpenStackConfig(config_files=[str(self.clouds_file)], load_envvars=False)
        return Connection(config=found.get_one(self.user)).compute

    def _id(self, name: str) -> str:
        [found] = self._api.get("/servers", params={"name": f"^{name}$"}).json()["servers"]
        return str(found["id"])

    def why(self, name: str) -> str:
        """What became of what was asked of it last."""
        last = self.ask("server", "event", "list", name)[0]
        return str(self.ask("server", "event", "show", name, last["Request ID"]))

    def log(self, name: str) -> str:
        return self.order("console", "log", "show", name)

    def await_log(self, name: str, pattern: str) -> str:
        """The text that it found."""
        found: list[str] = []

        def look() -> bool:
            asked = self._api.post(f"/servers/{self._id(name)}/action", json={"os-getConsoleOutput": {}})
            printed = asked.json()["output"] if asked.ok else ""
            found[:] = [match.group(0) for match in re.finditer(pattern, printed)]
            return bool(found)

        wait_until(look, f"{pattern!r} on the console of {name}", BOOT_SECONDS)
        return found[-1]

    def ticks(self, name: str) -> list[int]:
        return [int(number) for number in _TICK.findall(self.log(name))]

    def ssh(
        self,
        host: LibvirtHost,
        address: str,
        command: str,
        *,
        inside: Sequence[str] = (),
        check: bool = True,
    ) -> str:
        """Run a command inside a guest, from its host; `inside` leads to networks that the host is not on."""
        login = ("ssh", "-i", self.key, *_SSH, f"root@{address}")
        return host.run(*inside, *login, command, check=check)

    def console(self, name: str, kind: str) -> WebSocketClient:
        """As a browser opens it."""
        url = urlsplit(str(self.ask("console", "url", "show", f"--{kind}", name)["url"]))
        query = parse_qs(url.query)
        token = query["token"][0] if "token" in query else unquote(query["path"][0]).partition("token=")[2]
        return WebSocketClient(
            f"ws://{url.netloc}/?token={token}", origin=f"http://{url.netloc}", timeout=BOOT_SECONDS
        )


class SerialLine:
    """A shell in a guest, reached as its console."""

    def __init__(self, client: WebSocketClient) -> None:
        self._client = client

    def run(self, command: str) -> str:
        """What it prints; that has to come within seconds."""
        self._client.send(f"\necho begin=$((6 * 7)); {command}; echo; echo end=$((6 * 7))\n".encode())
        told = b""
        while b"end=42" not in told:
            told += self._client.receive(1)
        return told.partition(b"begin=42\r\n")[2].partition(b"\r\nend=42")[0].decode()

    def close(self) -> None:
        self._client.close()


@contextmanager
def serial_line(cloud: GuestCloud, name: str) -> Iterator[SerialLine]:
    line = SerialLine(cloud.console(name, "serial"))
    try:
        yield line
    finally:
        line.close()


class Pings:
    """Of one guest to another, all the while."""

    def __init__(self, line: SerialLine, address: str) -> None:
        self._line = line
        line.run(f"(ping -i {_PING_SECONDS} {address} > /tmp/pings 2>&1 &)")
        self.await_more()

    def await_more(self) -> None:
        before = len(self._answers())
        wait_until(lambda: len(self._answers()) > before + 5, "answers", BOOT_SECONDS)

    def longest_silence(self) -> float:
        """In seconds, until now; there are no more pings after that."""
        self.await_more()
        self._line.run("killall ping")
        return _PING_SECONDS * max(later - earlier - 1 for earlier, later in pairwise(self._answers()))

    def _answers(self) -> list[int]:
        """Their numbers."""
        return [int(number) for number in re.findall(r" seq=(\d+) ", self._line.run("cat /tmp/pings"))]


def address_of(shown: dict[str, Any]) -> str:
    """Of a server that has one."""
    [addresses] = shown["addresses"].values()
    [address] = addresses
    return str(address)


def answers_ping(host: LibvirtHost, address: str) -> bool:
    return " 0% packet loss" in host.run("ping", "-c", "1", "-W", "5", address, check=False)


def leftovers(host: LibvirtHost, instances: Path) -> list[str]:
    """What is on the host of servers and their networks."""
    links = re.findall(r"^\d+: (tap[^:@]*|mr[gt]-[^:@]*)", host.run("ip", "-o", "link"), re.MULTILINE)
    tables = [line for line in host.run("nft", "list", "tables").splitlines() if "moorage" in line]
    domains = host.run("virsh", "list", "--all", "--name").split()
    directories = [path.name for path in instances.iterdir() if path.name != "_base"]
    leases = host.run("pgrep", "dnsmasq", check=False).split()
    return [*links, *tables, *domains, *host.guest_pids(), *directories, *leases]
