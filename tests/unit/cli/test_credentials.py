from __future__ import annotations

import stat
from pathlib import Path

import bcrypt
import yaml

from moorage.cli import credentials
from moorage.cli.credentials import Endpoints
from moorage.http.auth import read_password_file

ENDPOINTS = Endpoints(placement="http://127.0.0.1:8778", compute="http://127.0.0.1:8774")


def test_generated_credentials_outlive_a_restart(tmp_path: Path) -> None:
    assert credentials.of_directory(tmp_path) == credentials.of_directory(tmp_path)


def test_the_service_accepts_the_generated_password(tmp_path: Path) -> None:
    made = credentials.of_directory(tmp_path)
    stored = read_password_file(made.password_file)[made.user]
    assert bcrypt.checkpw(made.password.encode(), stored)


def test_two_installations_do_not_share_a_password(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first, second = (credentials.of_directory(tmp_path / name) for name in ("a", "b"))
    assert first.password != second.password


def test_nobody_else_may_read_the_secrets(tmp_path: Path) -> None:
    credentials.of_directory(tmp_path)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_clouds_yaml_says_how_to_log_in(tmp_path: Path) -> None:
    made = credentials.of_directory(tmp_path)
    cloud = yaml.safe_load(credentials.clouds_yaml(ENDPOINTS, made))["clouds"]["moorage"]
    assert cloud["auth_type"] == "http_basic"
    assert cloud["auth"] == {
        "endpoint": "http://127.0.0.1:8778",
        "username": made.user,
        "password": made.password,
    }


def test_clouds_yaml_names_both_services() -> None:
    cloud = yaml.safe_load(credentials.clouds_yaml(ENDPOINTS, None))["clouds"]["moorage"]
    assert cloud["auth"]["endpoint"] == ENDPOINTS.placement
    assert cloud["compute_endpoint_override"] == f"{ENDPOINTS.compute}/v2.1"


def test_clouds_yaml_without_authentication_holds_no_secret() -> None:
    cloud = yaml.safe_load(credentials.clouds_yaml(ENDPOINTS, None))["clouds"]["moorage"]
    assert cloud["auth_type"] == "none"
    assert cloud["auth"] == {"endpoint": "http://127.0.0.1:8778"}
