"""Services that start before their database: after a power cut, machines come back in any order."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support import moorage, postgres
from tests.support.processes import free_port, port_is_open, start_service, wait_until


def test_a_service_waits_for_its_database_and_says_so(tmp_path: Path) -> None:
    with postgres.start() as server:
        config = moorage.configure(tmp_path, server.create_database("moorage"))
        moorage.sync_database(config)
        server.end()
        log, port = tmp_path / "placement.log", free_port()
        program = moorage.PROGRAMS / "moorage-placement"
        command: list[str | Path] = [program, "--config-file", config, "--port", str(port)]
        with start_service(command, port, log, ready=lambda: log.exists()) as service:
            wait_until(
                lambda: "the database can't be reached, next try in" in log.read_text(), "the wait", 30
            )
            server.start_again()
            wait_until(lambda: port_is_open(port), "the service", 30)
            assert service.process.poll() is None


def test_the_wait_has_an_end(tmp_path: Path) -> None:
    nowhere = f"postgresql+psycopg://nobody@127.0.0.1:{free_port()}/moorage"
    config = tmp_path / "moorage.conf"
    config.write_text(f"[database]\nconnection = {nowhere}\nwait_seconds = 1\n")
    command = [str(moorage.PROGRAMS / "moorage-conductor"), "--config-file", str(config)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1
    assert "error: the database can't be reached" in run.stderr
    assert "Traceback" not in run.stderr


def test_who_types_a_command_is_told_at_once(tmp_path: Path) -> None:
    nowhere = f"postgresql+psycopg://nobody@127.0.0.1:{free_port()}/moorage"
    config = tmp_path / "moorage.conf"
    config.write_text(f"[database]\nconnection = {nowhere}\nwait_seconds = 600\n")
    command = [str(moorage.PROGRAMS / "moorage-manage"), "--config-file", str(config), "seed"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 1
    assert "error: the database can't be reached" in run.stderr
    assert "next try" not in run.stderr
