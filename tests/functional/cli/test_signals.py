"""SIGTERM ends each process within its grace period, whatever it is at; SIGHUP ends none."""

from __future__ import annotations

import http.client
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest
import requests

from moorage.agent.journal import Journal
from moorage.bus.contract import Task
from moorage.drivers.contract import ServerSpec
from tests.support import moorage
from tests.support.black_hole import black_hole
from tests.support.moorage import PROGRAMS
from tests.support.processes import (
    Command,
    Service,
    free_port,
    is_alive,
    port_is_open,
    start_service,
    wait_until,
)
from tests.support.profiles import Settings, ini
from tests.support.slow_clients import Manner, holding

GRACE = 4
PATIENT = 30
"""Where it is not the time that counts, but that it ends by itself."""
SPARE = 10
"""For a machine that is busy with other things."""
ADMIN = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
NOWHERE = {"auth_type": "none", "endpoint": "http://127.0.0.1:1"}


def ended(service: Service) -> int:
    """What it left with after a SIGTERM; fails if it or a child of it is there for too long."""
    pids = service.pids()
    service.process.send_signal(signal.SIGTERM)
    code = service.process.wait(GRACE + SPARE)
    wait_until(lambda: not any(is_alive(pid) for pid in pids), "the workers to end", 5)
    return code


def hung_up(service: Service) -> None:
    """Sends a SIGHUP, and gives it the time to do harm."""
    wait_until(lambda: heeds_hangups(service.pid), "the program to be loaded", 60)
    service.process.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert service.process.poll() is None, service.log_tail()


def says(log: Path, sentence: str, times: int = 1) -> bool:
    return log.read_text().count(sentence) >= times


def heeds_hangups(pid: int) -> bool:
    """Whether the process has got as far as to ignore or to handle SIGHUP."""
    status = Path(f"/proc/{pid}/status").read_text()
    masks = re.findall(r"^Sig(?:Ign|Cgt):\s*([0-9a-f]+)$", status, re.MULTILINE)
    return any(int(mask, 16) & 1 << (signal.SIGHUP - 1) for mask in masks)


@contextmanager
def up(directory: Path, *, hosts: int = 1, grace: int = GRACE) -> Iterator[Service]:
    config = directory / "moorage.conf"
    config.write_text(ini({"process": {"grace_seconds": str(grace), "drain_seconds": "0"}}))
    port = free_port()
    command: list[str | Path] = [
        *(PROGRAMS / "moorage", "up", "--data", directory / "data", "--hosts", str(hosts)),
        *("--auth", "none", "--placement-port", str(port), "--compute-port", str(free_port())),
        *("--config", config),
    ]
    with start_service(command, port, directory / "up.log") as service:
        wait_until(lambda: "Stop it with" in service.log_tail(), "the greeting", 30)
        yield service


@contextmanager
def served(directory: Path, program: str, extra: Settings | None = None) -> Iterator[Service]:
    """`moorage-placement` or `moorage-api`, on SQLite."""
    group = program.removeprefix("moorage-").replace("api", "compute")
    config = moorage.configure(
        directory,
        f"sqlite:///{directory / 'data.sqlite'}",
        {
            "process": {"grace_seconds": str(GRACE), "drain_seconds": "0"},
            group: {"workers": "2", "threads": "2"},
            "placement_client": NOWHERE,
            **(extra or {}),
        },
    )
    moorage.sync_database(config)
    port = free_port()
    command: Command = [PROGRAMS / program, "--config-file", config, "--port", str(port)]
    with start_service(command, port, directory / "served.log", ready=lambda: healthy(port)) as service:
        yield service


def healthy(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code == 200
    except requests.RequestException:
        return False


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Nobody else can write for as long as this lasts."""
    file = sqlite3.connect(database, isolation_level=None, timeout=30)
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        file.execute("ROLLBACK")
        file.close()


@contextmanager
def hanging_requests(port: int, path: str, body: bytes, count: int = 4) -> Iterator[None]:
    """Requests that want to write, and can't."""

    def ask() -> None:
        with suppress(requests.RequestException):
            requests.post(
                f"http://127.0.0.1:{port}{path}",
                data=body,
                headers={**ADMIN, "Content-Type": "application/json"},
                timeout=60,
            )

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    yield
    for thread in threads:
        thread.join(10)


PROVIDER = b'{"name": "hangs"}'
AGGREGATE = b'{"aggregate": {"name": "hangs"}}'


def test_up_ends_while_requests_hang(tmp_path: Path) -> None:
    with (
        up(tmp_path) as service,
        locked(tmp_path / "data" / "moorage.sqlite"),
        hanging_requests(service.port, "/resource_providers", PROVIDER),
    ):
        ended(service)


def test_up_outlives_a_hangup_and_ends_politely_whoever_is_connected(tmp_path: Path) -> None:
    with (
        up(tmp_path) as service,
        holding(service.port, Manner.IDLE, 10, "/resource_providers"),
        holding(service.port, Manner.SLOW_BODY, 10, "/resource_providers"),
        holding(service.port, Manner.SLOW_HEADERS, 10, "/resource_providers"),
    ):
        config, log = tmp_path / "moorage.conf", tmp_path / "up.log"
        assert not asked_and_logged(service.port, log)
        sensible = config.read_text() + "\n[log]\nlevel = INFO\n"
        config.write_text(sensible)
        hung_up(service)
        wait_until(partial(says, log, "SIGHUP: the log's level is INFO"), "it", 30)
        wait_until(lambda: asked_and_logged(service.port, log), "requests to be logged", 30)
        config.write_text(sensible + "[process]\ngrace_seconds = long\n")
        hung_up(service)
        wait_until(partial(says, log, "everything stays as it was"), "it", 30)
        assert log.read_text().count("grace_seconds") == 1
        assert healthy(service.port)
        assert ended(service) == 0
        assert "Moorage has stopped." in service.log_tail()


def test_up_answers_what_it_is_at_before_it_ends(tmp_path: Path) -> None:
    with up(tmp_path, grace=PATIENT) as service:
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
        with locked(tmp_path / "data" / "moorage.sqlite"):
            connection.request(
                "POST", "/resource_providers", PROVIDER, {**ADMIN, "Content-Type": "application/json"}
            )
            time.sleep(0.5)
            service.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
        assert connection.getresponse().status == 200
        assert service.process.wait(PATIENT + SPARE) == 0, service.log_tail()


@pytest.mark.parametrize(
    ("program", "path", "body"),
    [
        ("moorage-placement", "/resource_providers", PROVIDER),
        ("moorage-api", "/v2.1/os-aggregates", AGGREGATE),
    ],
)
def test_an_api_ends_while_requests_hang(tmp_path: Path, program: str, path: str, body: bytes) -> None:
    with (
        served(tmp_path, program) as service,
        locked(tmp_path / "data.sqlite"),
        hanging_requests(service.port, path, body),
        holding(service.port, Manner.SLOW_BODY, 20, path),
        holding(service.port, Manner.IDLE, 20, "/healthz"),
    ):
        ended(service)


SECRET: Settings = {"metadata": {"shared_secret": "s"}}
NO_PASSWORDS = "[auth]\nstrategy = basic\nbasic_auth_file = /nowhere\n"
"""What only a worker finds out: it builds what asks for passwords."""


@pytest.mark.parametrize(
    ("program", "extra", "away"),
    [
        ("moorage-placement", {}, {}),
        ("moorage-metadata", SECRET, {}),
        ("moorage-api", {}, {"placement": "unreachable", "broker": "can't be reached"}),
    ],
)
def test_an_api_outlives_hangups_and_ends_in_the_midst_of_one(
    tmp_path: Path, program: str, extra: Settings, away: dict[str, str]
) -> None:
    nowhere: Settings = {"DEFAULT": {"transport_url": "rabbit://x:x@127.0.0.1:1/"}, **extra}
    with served(tmp_path, program, nowhere) as service:
        answer = requests.get(f"http://127.0.0.1:{service.port}/readyz", timeout=10)
        found = dict(line.split(": ", 1) for line in answer.text.splitlines())
        assert {name: said for name, said in found.items() if said == "ok"} == {
            "database": "ok",
            "schema": "ok",
        }
        assert answer.status_code == (503 if away else 200)
        assert found.keys() == {"database", "schema", *away}
        assert all(found[name].startswith(said) for name, said in away.items()), found
        hung_up(service)
        wait_until(lambda: healthy(service.port), "it to serve again", 30)
        for pid in service.pids()[1:]:
            with suppress(ProcessLookupError):
                subprocess.run(["kill", "-HUP", str(pid)], check=False)
        hung_up(service)
        wait_until(lambda: healthy(service.port), "it to serve again", 30)
        service.process.send_signal(signal.SIGHUP)
        ended(service)


@pytest.mark.parametrize(
    ("program", "extra", "mistakes"),
    [
        ("moorage-placement", {}, ["[process]\ngrace_seconds = long\n", NO_PASSWORDS]),
        ("moorage-metadata", SECRET, ["[process]\ngrace_seconds = long\n", "[metadata]\nthreads = many\n"]),
        ("moorage-api", {}, ["[pci]\nalias = {\n", NO_PASSWORDS]),
    ],
)
def test_an_api_takes_up_a_changed_file_and_refuses_one_that_makes_no_sense(
    tmp_path: Path, program: str, extra: Settings, mistakes: list[str]
) -> None:
    """Its workers would die of it, and the service with them."""
    with served(tmp_path, program, {**extra, "log": {"level": "WARNING"}}) as service:
        config, log = tmp_path / "moorage.conf", tmp_path / "served.log"
        sensible = config.read_text().replace("level = WARNING", "level = INFO")
        config.write_text(sensible)
        older = service.pids()[1:]
        hung_up(service)
        wait_until(partial(says, log, "SIGHUP: new workers take up"), "it", 60)
        wait_until(lambda: asked_and_logged(service.port, log), "a worker that logs requests", 60)
        # they are replaced one after the other, and each reads the file
        wait_until(lambda: not any(is_alive(pid) for pid in older), "the older workers to end", 60)
        for count, mistake in enumerate(mistakes, 1):
            config.write_text(f"{sensible}\n{mistake}")
            hung_up(service)
            wait_until(partial(says, log, "SIGHUP is refused", count), "the refusal", 60)
            assert healthy(service.port)
        assert "Unexpected exit" not in log.read_text(), service.log_tail()
        ended(service)


def asked_and_logged(port: int, log: Path) -> bool:
    """Whether a worker answers that writes a line for each request."""
    requests.get(f"http://127.0.0.1:{port}/no-such-thing", timeout=10)
    return says(log, "/no-such-thing")


def test_an_api_ends_while_it_waits_for_its_database(tmp_path: Path) -> None:
    with black_hole() as port:
        config = tmp_path / "moorage.conf"
        config.write_text(
            ini(
                {
                    "database": {"connection": f"postgresql+psycopg://x@127.0.0.1:{port}/x"},
                    "auth": {"strategy": "none"},
                    "process": {"grace_seconds": str(GRACE), "drain_seconds": "0"},
                }
            )
        )
        for program in ("moorage-placement", "moorage-conductor"):
            log = tmp_path / f"{program}.log"
            command: Command = [PROGRAMS / program, "--config-file", config]
            with start_service(command, 0, log, ready=lambda: True) as service:
                wait_until(partial(says, log, "can't be reached"), "the wait", 60)
                hung_up(service)
                assert ended(service) in (0, -signal.SIGTERM)


@contextmanager
def alone(directory: Path, program: str, settings: Settings, said: str) -> Iterator[Service]:
    """A process that nobody connects to; it is there when it has said something."""
    config, log = directory / "alone.conf", directory / "alone.log"
    config.write_text(ini({"process": {"grace_seconds": str(GRACE), "drain_seconds": "0"}, **settings}))
    command: Command = [PROGRAMS / program, "--config-file", config]
    metrics = settings[program.removeprefix("moorage-")].get("metrics_port")

    def is_there() -> bool:
        return log.exists() and said in log.read_text() and (not metrics or port_is_open(int(metrics)))

    with start_service(command, 0, log, ready=is_there) as service:
        yield service


@contextmanager
def conductor(directory: Path, url: str, broker: int, placement: int) -> Iterator[Service]:
    settings: Settings = {
        "DEFAULT": {"transport_url": f"rabbit://x:x@127.0.0.1:{broker}/"},
        "database": {"connection": url},
        "placement_client": {"auth_type": "none", "endpoint": f"http://127.0.0.1:{placement}"},
        "placement": {"required": "false"},
        "conductor": {"metrics_port": str(free_port()), "heartbeat_interval": "0.5"},
    }
    with alone(directory, "moorage-conductor", settings, "") as service:
        yield service


def probed(directory: Path, path: str) -> tuple[int, dict[str, str]]:
    """What a process says of itself on the port of its metrics: by name, what was found."""
    port = re.findall(r"^metrics_port *= *(\d+)", (directory / "alone.conf").read_text(), re.MULTILINE)[0]
    answer = requests.get(f"http://127.0.0.1:{port}{path}", timeout=10)
    return answer.status_code, dict(line.split(": ", 1) for line in answer.text.splitlines() if ": " in line)


@pytest.mark.parametrize("away", ["refuses", "says nothing"])
def test_a_conductor_tells_who_is_away_outlives_a_hangup_and_ends(
    tmp_path: Path, sqlite_url: str, away: str
) -> None:
    with black_hole() as hole:
        port = 1 if away == "refuses" else hole
        with conductor(tmp_path, sqlite_url, broker=port, placement=1) as service:
            assert probed(tmp_path, "/healthz") == (200, {"database": "ok"})
            status, found = probed(tmp_path, "/readyz")
            assert (status, found["schema"], found["placement"][:11]) == (503, "ok", "unreachable")
            assert found["broker"].startswith("can't be reached" if away == "refuses" else "ok")
            config = tmp_path / "alone.conf"
            config.write_text(config.read_text() + "\n[log]\nlevel = DEBUG\n")
            hung_up(service)
            wait_until(partial(says, tmp_path / "alone.log", "SIGHUP: the log's level is DEBUG"), "it", 30)
            config.write_text(config.read_text() + "[conductor]\nthreads = many\n")
            hung_up(service)
            wait_until(partial(says, tmp_path / "alone.log", "everything stays as it was"), "it", 30)
            ended(service)


def test_a_console_proxy_tells_who_is_away_and_outlives_a_hangup(tmp_path: Path, sqlite_url: str) -> None:
    settings: Settings = {
        "DEFAULT": {"transport_url": "rabbit://x:x@127.0.0.1:1/"},
        "database": {"connection": sqlite_url},
        "consoles": {"port": str(free_port()), "metrics_port": str(free_port())},
        "console-proxy": {},
    }
    with alone(tmp_path, "moorage-console-proxy", settings, "") as service:
        wait_until(lambda: port_is_open(int(settings["consoles"]["metrics_port"])), "its metrics", 60)
        assert probed(tmp_path, "/healthz") == (200, {"database": "ok"})
        status, found = probed(tmp_path, "/readyz")
        assert (status, found["broker"][:16]) == (503, "can't be reached")
        hung_up(service)
        wait_until(partial(says, tmp_path / "alone.log", "SIGHUP: the log's level is"), "it", 30)
        ended(service)


def test_a_conductor_ends_while_its_database_is_stuck(tmp_path: Path, sqlite_url: str) -> None:
    with (
        conductor(tmp_path, sqlite_url, broker=1, placement=1) as service,
        locked(Path(sqlite_url.removeprefix("sqlite:///"))),
    ):
        time.sleep(2)  # for its heartbeat to be due
        ended(service)


def agent_settings(directory: Path, broker: int, placement: int) -> Settings:
    return {
        "DEFAULT": {"transport_url": f"rabbit://x:x@127.0.0.1:{broker}/"},
        "placement_client": {"auth_type": "none", "endpoint": f"http://127.0.0.1:{placement}"},
        "placement": {"required": "false"},
        "agent": {
            "host": "host-1",
            "state_directory": str(directory / "state"),
            "metrics_port": str(free_port()),
        },
    }


@pytest.mark.parametrize("away", ["refuses", "says nothing"])
def test_an_agent_ends_without_its_neighbours_and_while_a_machine_hangs(tmp_path: Path, away: str) -> None:
    node = "10000000-0000-4000-8000-000000000001"
    spec = ServerSpec("server-1", "s", "p", "u", node, {}, metadata={"fake:spawn": "hang"})
    journal = Journal(tmp_path / "state" / "journal.sqlite")
    journal.accept([Task(1, "server-1", "spawn", 1, node, msgspec.to_builtins(spec))])
    journal.close()
    with black_hole() as hole:
        port = 1 if away == "refuses" else hole
        settings = agent_settings(tmp_path, broker=port, placement=1)
        with alone(tmp_path, "moorage-agent", settings, "taking up 1 tasks") as service:
            status, found = probed(tmp_path, "/readyz")
            assert (status, found["driver"], found["placement"][:11]) == (503, "ok", "unreachable")
            assert probed(tmp_path, "/healthz")[0] == 200
            config = tmp_path / "alone.conf"
            config.write_text(config.read_text() + "\n[log]\nlevel = DEBUG\n")
            hung_up(service)
            wait_until(partial(says, tmp_path / "alone.log", "SIGHUP: the log's level is DEBUG"), "it", 30)
            config.write_text(config.read_text() + "level = loud\n")
            hung_up(service)
            wait_until(partial(says, tmp_path / "alone.log", "everything stays as it was"), "it", 30)
            ended(service)


def test_an_agent_that_waits_for_placement_can_be_ended(tmp_path: Path) -> None:
    with black_hole() as hole:
        config, log = tmp_path / "agent.conf", tmp_path / "agent.log"
        settings = agent_settings(tmp_path, broker=1, placement=hole)
        config.write_text(ini({"process": {"grace_seconds": str(GRACE), "drain_seconds": "0"}, **settings}))
        command: Command = [PROGRAMS / "moorage-agent", "--config-file", config]
        with start_service(command, 0, log, ready=lambda: True) as service:
            hung_up(service)
            assert ended(service) in (0, -signal.SIGTERM)


STUBBORN = """
import ctypes, logging, threading, time
from moorage.cli.processes.shutdown import Shutdown

logging.basicConfig()
ending = Shutdown(2)
ending.listen()
threading.Thread(target=time.sleep, args=(600,), name="stubborn").start()
print("ready", flush=True)
{rest}
"""
NEVER_BACK = "[ctypes.CDLL(None).sleep(600) for _ in range(9)]"
"""A call that does not let Python's own handlers run."""
POLITE = "ending.wait()"
"""The main thread ends, another one does not."""


@pytest.mark.parametrize("rest", [NEVER_BACK, POLITE, f"ending.wait(); {NEVER_BACK}"])
def test_what_does_not_end_is_ended_by_force_and_says_so(rest: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN.format(rest=rest)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    begun = time.monotonic()
    _, said = process.communicate(timeout=30)
    assert time.monotonic() - begun > 1
    assert process.returncode == 1
    assert "ended by force" in said
    assert "stubborn" in said
