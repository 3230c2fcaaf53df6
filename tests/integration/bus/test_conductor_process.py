"""`moorage-conductor` as an operator runs it."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import requests
from oslo_config import cfg

from tests.support import moorage
from tests.support.processes import Command, free_port, port_is_open, start_service
from tests.support.rabbitmq import RabbitMQ


def configure(directory: Path, database_url: str, transport_url: str, exchange: str, metrics: int) -> Path:
    config = directory / "conductor.conf"
    config.write_text(
        f"[DEFAULT]\ntransport_url = {transport_url}\n"
        f"[bus]\nexchange = {exchange}\n"
        f"[database]\nconnection = {database_url}\n"
        "[placement_client]\nauth_type = none\nendpoint = http://127.0.0.1:1\n"
        f"[conductor]\nmetrics_port = {metrics}\n"
    )
    moorage.sync_database(config)
    return config


def test_it_serves_metrics_and_starts_without_a_warning(
    tmp_path: Path, sqlite_url: str, broker: RabbitMQ, conf: cfg.ConfigOpts
) -> None:
    port, log = free_port(), tmp_path / "conductor.log"
    config = configure(tmp_path, sqlite_url, broker.url, conf.bus.exchange, port)
    command: Command = [moorage.PROGRAMS / "moorage-conductor", "--config-file", config]
    with start_service(command, port, log, ready=lambda: port_is_open(port)) as conductor:
        told = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
        assert "moorage_conductor_fenced_total 0.0" in told
        assert "moorage_scheduler_pass_seconds_count 0.0" in told
        conductor.process.send_signal(signal.SIGTERM)
        assert conductor.process.wait(20) == 0
    assert "arning" not in log.read_text()


def test_a_port_that_is_taken_is_told_in_a_sentence(tmp_path: Path, sqlite_url: str) -> None:
    config = configure(tmp_path, sqlite_url, "rabbit://guest:guest@127.0.0.1:1/", "x", 1)
    config.write_text(config.read_text() + "metrics_listen = 192.0.2.1\n")
    command = [str(moorage.PROGRAMS / "moorage-conductor"), "--config-file", str(config)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1
    assert "can't serve metrics on 192.0.2.1:1" in run.stderr
    assert "Traceback" not in run.stderr
