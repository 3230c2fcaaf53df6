"""The compose file's commands, in their order, as processes beside a real PostgreSQL and RabbitMQ; and an
image that is built without an engine. What an engine makes of the file: test_compose.py.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.support import debian, postgres, rabbitmq
from tests.support.composed_cloud import CONTAINERS, boots, lay_out, services
from tests.support.debian import Unavailable
from tests.support.processes import Command, free_port, port_is_open, start_service

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("MOORAGE_PACKAGES"), reason="minutes of a processor: make packages"
    ),
    pytest.mark.timeout(1200),
]

ENTRIES: dict[str, list[str]] = {
    target: json.loads(words)
    for target, words in re.findall(
        r"(?ms)^FROM common AS (\S+)$.*?^ENTRYPOINT (\[.*?\])$", (CONTAINERS / "Containerfile").read_text()
    )
}
ONCE = {"schema", "flavors"}


class Composed:
    """What the compose file has, started as processes of this machine."""

    def __init__(self, directory: Path, instead: dict[str, str]) -> None:
        self.services = services()
        self._directory = directory
        for name in ("moorage.conf", "agent.conf", "htpasswd"):
            text = (CONTAINERS / name).read_text()
            for theirs, ours in instead.items():
                text = text.replace(theirs, ours)
            (directory / name).write_text(text)

    def order(self) -> Iterator[str]:
        """Ours, as the file has them: who comes too early here is not started again."""
        yield from (name for name, service in self.services.items() if "build" in service)

    def command(self, name: str) -> list[str]:
        service = self.services[name]
        given: list[str] = service.get("command", [])
        program, *words = [*ENTRIES[service["build"]["target"]], *given]
        placed = [word.replace("/etc/moorage", str(self._directory)) for word in words]
        own = [] if "agent" not in name else ["--state-directory", str(self._directory / name)]
        return [str(Path(sys.executable).parent / program), *placed, *own]


def test_what_the_compose_file_starts_is_a_cloud(tmp_path: Path) -> None:
    ports = {name: free_port() for name in ("placement", "compute", "consoles")}
    with ExitStack() as stack:
        database = stack.enter_context(postgres.start())
        try:
            broker = stack.enter_context(rabbitmq.start())
        except Unavailable as error:
            pytest.skip(str(error))
        instead = {
            "postgresql+psycopg://moorage:moorage@postgres:5432/moorage": database.create_database("moorage"),
            "rabbit://moorage:moorage@rabbitmq:5672/": broker.url,
            "http://placement:8778": f"http://127.0.0.1:{ports['placement']}",
            "/etc/moorage": str(tmp_path),
            "/var/lib/moorage": str(tmp_path),
            "[placement]\n": f"[placement]\nport = {ports['placement']}\n",
            "[compute]\n": f"[compute]\nport = {ports['compute']}\n",
            "[consoles]\n": f"[consoles]\nport = {ports['consoles']}\n",
            "0.0.0.0": "127.0.0.1",
        }
        composed = Composed(tmp_path, instead)
        listening = {"placement": "placement", "api": "compute", "console-proxy": "consoles"}
        for name in composed.order():
            command: Command = composed.command(name)
            if name in ONCE:
                subprocess.run(command, check=True, capture_output=True)
                continue
            port = ports.get(listening.get(name, ""), 0)
            ready = partial(port_is_open, port) if port else partial(bool, True)
            stack.enter_context(start_service(command, port, tmp_path / f"{name}.log", ready=ready))
        boots(f"http://127.0.0.1:{ports['compute']}", f"http://127.0.0.1:{ports['placement']}")


def test_an_image_is_built_and_runs(tmp_path: Path) -> None:
    try:
        debian.install("mmdebstrap", "buildah")
    except Unavailable as error:
        pytest.skip(str(error))
    context = tmp_path / "context"
    recipe = lay_out(context) / "Containerfile"
    base = tmp_path / "base.tar"
    included = "--include=python3,adduser,ca-certificates"
    subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=minbase", included, "bookworm", str(base)], check=True
    )

    def buildah(*words: str | Path) -> str:
        kept: Command = [
            "--root",
            tmp_path / "storage",
            "--runroot",
            tmp_path / "run",
            "--storage-driver",
            "vfs",
        ]
        ran = subprocess.run(["buildah", *kept, *words], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    empty = buildah("from", "scratch")
    buildah("add", empty, base, "/")
    buildah("commit", "--rm", empty, "localhost/base")
    apart = ["--isolation", "chroot", "--network", "host"]
    chosen = ["--pull-never", "--build-arg", "BASE=localhost/base", "--target", "placement"]
    buildah("build", *apart, *chosen, "--file", recipe, "--tag", "placement", context)
    running = buildah("from", "localhost/placement")
    assert buildah("run", *apart, running, "--", "moorage-placement", "--version").startswith(
        "moorage-placement "
    )
    assert "(moorage)" in buildah("run", *apart, running, "--", "id")
    assert "schema empty -> " in buildah("run", *apart, running, "--", "moorage-manage", "db", "sync")
