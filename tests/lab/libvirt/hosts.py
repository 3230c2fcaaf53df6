"""Hosts for virtual machines: each has namespaces of its own, in which libvirtd and guests live and die."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.libvirt import programs
from tests.support.namespaces import Namespace
from tests.support.processes import Command, Service, is_alive, start_service, wait_until

_QEMU = """\
cgroup_controllers = []
namespaces = []
migration_address = "{address}"
migration_host = "{address}"
"""
_LIBVIRTD = """\
host_uuid = "{uuid}"
auth_unix_rw = "none"
auth_unix_ro = "none"
unix_sock_rw_perms = "0700"
auth_tcp = "none"
listen_tcp = 1
listen_tls = 0
listen_addr = "{address}"
log_outputs = "2:file:/var/log/libvirt/libvirtd.log"
keepalive_interval = 1
keepalive_count = 4
"""
CLIENT_TIMEOUT = 5
"""Seconds after which libvirtd closes the connection of a client that stands still: what these two say."""
# A host sees these directories of its own where libvirt, the network and our agent look for theirs.
_PLACES = {
    "etc": "/etc/libvirt",
    "lib": "/var/lib/libvirt",
    "cache": "/var/cache/libvirt",
    "log": "/var/log/libvirt",
    "run": "/run/libvirt",
    "netns": "/run/netns",
    "moorage": "/run/moorage",
    "ovs/run": "/run/openvswitch",
    "ovs/etc": "/etc/openvswitch",
    "ovs/lib": "/var/lib/openvswitch",
    "ovs/log": "/var/log/openvswitch",
}
_FIRST = """\
set -e
hostname "$1"
{mounts}
mount --bind "$2/instances" "$3/instances"
mount --bind "$3/etc-hosts" /etc/hosts
if [ -e /dev/kvm ]; then install -m 0 /dev/null "$2/no-kvm"; mount --bind "$2/no-kvm" /dev/kvm; fi
mount -t sysfs sysfs /sys
ip link set lo up
touch "$2/ready"
while :; do sleep 3600 & wait $!; done
"""
# It has to be a shell to the end: that buries the dead of the host, as an init does. Guests are emulated:
# a KVM that only looks as if it worked has libvirt ask QEMU again, for seconds, at each start of a guest.


@dataclass
class LibvirtHost:
    """Its first process is the first of a PID namespace: with it, everything on the host dies."""

    name: str
    address: str
    directory: Path
    first_pid: int = 0
    """Of what waits for its first process."""
    first: subprocess.Popen[bytes] | None = None
    """None if it is another process's."""
    libvirtd: Service | None = None
    logs: Service | None = None
    """virtlogd, which writes guests' console logs."""
    identity: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def socket(self) -> Path:
        return self.directory / "run" / "libvirt-sock"

    @property
    def uri(self) -> str:
        """For who is outside the host; inside it is `qemu:///system`."""
        return f"qemu+unix:///system?socket={self.socket}"

    @property
    def pid(self) -> int:
        """Of its first process, as it is called outside: what `nsenter` and `ip link` want."""
        children = Path(f"/proc/{self.first_pid}/task/{self.first_pid}/children").read_text().split()
        return int(children[0])

    @property
    def network(self) -> Namespace:
        return Namespace(self.name, Path(f"/proc/{self.pid}/ns/net"))

    def command(self, *words: str | Path) -> list[str]:
        """What runs these words inside the host."""
        inside = ["nsenter", "-t", str(self.pid), "-m", "-u", "-n", "-p", f"--wdns={self.directory}", "--"]
        return [*inside, *(str(word) for word in words)]

    def run(self, *words: str | Path, check: bool = True) -> str:
        ended = subprocess.run(self.command(*words), check=False, capture_output=True, text=True)
        if check and ended.returncode:
            raise AssertionError(f"{words} on {self.name}: {ended.stdout}{ended.stderr}")
        return ended.stdout

    def start(self, words: Command, log: Path, environment: Mapping[str, str] | None = None) -> Service:
        """A service that dies with the host, if it is not ended before."""
        return start_service(self.command(*words), 0, log, environment, ready=lambda: True)

    def start_libvirtd(self) -> None:
        if self.logs is None:
            words = ("virtlogd", "--pid-file", "/run/libvirt/virtlogd.pid")
            self.logs = self.start(words, self.directory / "virtlogd.out")
        self.socket.unlink(missing_ok=True)
        self.libvirtd = start_service(
            self.command("libvirtd", "--listen", "--pid-file", "/run/libvirt/libvirtd.pid"),
            0,
            self.directory / "libvirtd.out",
            ready=self._answers,
            timeout=300,  # it has to find out what QEMU can, on a machine that may be busy
        )

    def kill_libvirtd(self, *, politely: bool = False) -> None:
        """Guests live on."""
        assert self.libvirtd is not None
        for pid in self.daemon_pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM if politely else signal.SIGKILL)
        wait_until(lambda: not self.daemon_pids(), "the end of libvirtd")
        self.libvirtd.process.wait()
        self.libvirtd = None

    def guest_pids(self) -> dict[str, int]:
        """Processes of QEMU as they are called outside, by the UUID of their guest."""
        found = {}
        for pid in self._pids():
            words = _words(pid)
            if words and "qemu-system" in words[0] and "-uuid" in words:
                found[words[words.index("-uuid") + 1]] = pid
        return found

    def starts(self, server_uuid: str) -> int:
        """How often a QEMU was started for a guest, ever: as libvirt's logs say."""
        logs = (self.directory / "log" / "qemu").glob("*.log")
        return sum(log.read_text(errors="replace").count(f"-uuid {server_uuid}") for log in logs)

    def kill_guest(self, server_uuid: str) -> None:
        os.kill(self.guest_pids()[server_uuid], signal.SIGKILL)

    @property
    def is_alive(self) -> bool:
        return is_alive(self.first_pid)

    def die(self) -> None:
        """What a power cut does."""
        assert self.first is not None
        if self.first.poll() is None:
            pids = self._pids()
            os.kill(self.pid, signal.SIGKILL)
            self.first.wait()
            wait_until(lambda: not any(is_alive(pid) for pid in pids), f"the end of host {self.name}")

    def _answers(self) -> bool:
        asked = subprocess.run(["virsh", "-c", self.uri, "version"], check=False, capture_output=True)
        return asked.returncode == 0

    def daemon_pids(self) -> list[int]:
        return [pid for pid in self._pids() if _words(pid)[:1] == ["libvirtd"]]

    def _pids(self) -> list[int]:
        """All that live in its PID namespace."""
        try:
            own = os.readlink(f"/proc/{self.pid}/ns/pid")
        except (OSError, IndexError):
            return []
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(directory / "ns" / "pid") == own and is_alive(int(directory.name)):
                    found.append(int(directory.name))
        return found


@dataclass
class LibvirtLab:
    directory: Path
    hosts: dict[str, LibvirtHost]
    gateway: str
    """This machine, as hosts reach it."""
    fabric: str = ""
    """The namespace of the cable between them, if there is one."""

    def power_on(self, name: str) -> None:
        """A host that has died: it has its files, and nothing that was in its memory."""
        host = self.hosts[name]
        _switch_on(self.directory, host)
        if self.fabric:
            _plug_in(self.fabric, list(self.hosts).index(name) + 1, host)
        _configure(host)
        host.logs = None
        host.start_libvirtd()

    @property
    def shared(self) -> Path:
        """A directory that all hosts and this machine see."""
        return self.directory / "shared"

    @property
    def instances(self) -> Path:
        """A directory that each host has for itself: what is there is in `private` from outside."""
        return self.directory / "instances"

    def private(self, host: str) -> Path:
        return self.hosts[host].directory / "instances"


@contextmanager
def running(
    directory: Path, names: Sequence[str] = ("h1",), *, connected: bool = False
) -> Iterator[LibvirtLab]:
    """Hosts with a libvirtd each; `connected`: with a network between them and this machine.

    `debian.Unavailable` if there is no libvirt, and none can be installed.
    """
    programs.install()
    mark, chance = secrets.token_hex(2), secrets.SystemRandom()
    net = f"10.{chance.randrange(64, 255)}.{chance.randrange(255)}"
    addresses = {name: f"{net}.{10 + number}" for number, name in enumerate(names, 1)}
    lines = ["127.0.0.1 localhost", f"{net}.1 lab", *(f"{ip} {name}" for name, ip in addresses.items())]
    with ExitStack() as stack:
        logs, directory = directory, stack.enter_context(passable_directory())
        logs.mkdir(parents=True, exist_ok=True)
        (logs / "lab").symlink_to(directory)
        for made in ("shared", "instances", "hosts"):
            (directory / made).mkdir()
        (directory / "etc-hosts").write_text("".join(f"{line}\n" for line in lines))
        lab = LibvirtLab(directory, {}, f"{net}.1")
        for name, address in addresses.items():
            lab.hosts[name] = host = _boot(directory, name, address)
            stack.callback(_remove, host)
        if connected:
            stack.enter_context(_cabled(mark, net, lab))
        for host in lab.hosts.values():
            _configure(host)
            host.start_libvirtd()
            _remember_probes(host)
        yield lab


@contextmanager
def passable_directory() -> Iterator[Path]:
    """QEMU's account can't pass the directories that pytest makes for a test."""
    with tempfile.TemporaryDirectory(prefix="moorage-lab-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        yield Path(made).resolve()


def _boot(directory: Path, name: str, address: str) -> LibvirtHost:
    own = directory / "hosts" / name
    for place in (*_PLACES, "instances", "etc/qemu"):
        (own / place).mkdir(parents=True, exist_ok=True)
    for place in _PLACES.values():
        Path(place).mkdir(parents=True, exist_ok=True)
    host = LibvirtHost(name, address, own)
    _switch_on(directory, host)
    return host


def _switch_on(directory: Path, host: LibvirtHost) -> None:
    name, own = host.name, host.directory
    for old in (own / "ready", *(own / "run").glob("*")):  # of what a boot finds empty
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
    mounts = "\n".join(f'mount --bind "$2/{ours}" {theirs}' for ours, theirs in _PLACES.items())
    script = _FIRST.format(mounts=mounts)
    first = subprocess.Popen(
        [
            *("unshare", "--mount", "--uts", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"),
            *("--propagation", "private", "bash", "-c", script, "host", name, str(own), str(directory)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=(own / "first.log").open("wb"),
        start_new_session=True,
    )
    wait_until(lambda: (own / "ready").exists() or first.poll() is not None, f"host {name}")
    if first.poll() is not None:
        raise AssertionError((own / "first.log").read_text())
    host.first, host.first_pid = first, first.pid


def _configure(host: LibvirtHost) -> None:
    """As the packages have it, but for what a container lacks: cgroups, and a /dev for each guest."""
    inside = host.run("ip", "-o", "addr")
    if host.address not in inside:  # libvirtd listens there, whether anybody is connected or not
        host.run("ip", "addr", "add", f"{host.address}/32", "dev", "lo")
    (host.directory / "run").mkdir(exist_ok=True)
    (host.directory / "etc" / "qemu.conf").write_text(_QEMU.format(address=host.address))
    (host.directory / "etc" / "libvirtd.conf").write_text(
        _LIBVIRTD.format(uuid=host.identity, address=host.address)
    )
    probes = programs.CACHE / "qemu-probes"
    if probes.exists():
        shutil.copytree(probes, host.directory / "cache" / "qemu", dirs_exist_ok=True)


def _remember_probes(host: LibvirtHost) -> None:
    """A libvirtd asks QEMU for seconds what it can do, unless one did before: it notices a newer QEMU."""
    probes, found = programs.CACHE / "qemu-probes", host.directory / "cache" / "qemu"
    if not probes.exists() and found.exists():
        made = probes.with_name(f"{probes.name}-{secrets.token_hex(4)}")
        shutil.copytree(found, made)
        with contextlib.suppress(OSError):  # somebody else was quicker
            made.rename(probes)
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _cabled(mark: str, net: str, lab: LibvirtLab) -> Iterator[None]:
    """A bridge in a namespace of its own is the cable; this machine has an end of it, too."""
    fabric = f"moorage-{mark}"
    _ip("netns", "add", fabric)
    try:
        _ip("-n", fabric, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
        _ip("-n", fabric, "link", "set", "br0", "up")
        _ip("link", "add", f"mv{mark}", "type", "veth", "peer", "name", "m0", "netns", fabric)
        _ip("-n", fabric, "link", "set", "m0", "master", "br0", "up")
        _ip("addr", "add", f"{net}.1/24", "dev", f"mv{mark}")
        _ip("link", "set", f"mv{mark}", "up")
        for number, host in enumerate(lab.hosts.values(), 1):
            _plug_in(fabric, number, host)
        lab.fabric = fabric
        yield
    finally:
        subprocess.run(["ip", "link", "del", f"mv{mark}"], check=False, capture_output=True)
        _ip("netns", "del", fabric)


def _plug_in(fabric: str, number: int, host: LibvirtHost) -> None:
    """In the place of the cable of a life before, if somebody still listens on a port of that."""
    old = ["ip", "-n", fabric, "link", "del", f"m{number}"]
    subprocess.run(old, check=False, capture_output=True)
    _ip(
        "link",
        "add",
        f"m{number}",
        "netns",
        fabric,
        "type",
        "veth",
        "peer",
        "name",
        "mgmt0",
        "netns",
        str(host.pid),
    )
    _ip("-n", fabric, "link", "set", f"m{number}", "master", "br0", "up")
    host.run("ip", "addr", "add", f"{host.address}/24", "dev", "mgmt0")
    host.run("ip", "link", "set", "mgmt0", "up")


def _remove(host: LibvirtHost) -> None:
    host.die()
    for service in (host.libvirtd, host.logs):
        if service is not None:
            service.process.wait()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
