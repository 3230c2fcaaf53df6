from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import bcrypt
from openstack.config import OpenStackConfig

from moorage.cli.embedded import credentials
from moorage.cli.embedded.credentials import Credentials, Endpoints
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


def as_read(directory: Path, login: Credentials | None) -> dict[str, Any]:
    """The cloud in a `clouds.yaml`, as the official clients find it."""
    path = directory / "clouds.yaml"
    path.write_text(credentials.clouds_yaml(ENDPOINTS, login))
    found = OpenStackConfig(config_files=[str(path)], load_envvars=False).cloud_config
    return dict(found["clouds"]["moorage"])


def test_clouds_yaml_says_how_to_log_in(tmp_path: Path) -> None:
    made = credentials.of_directory(tmp_path)
    cloud = as_read(tmp_path, made)
    assert cloud["auth_type"] == "http_basic"
    assert cloud["auth"] == {
        "endpoint": "http://127.0.0.1:8778",
        "username": made.user,
        "password": made.password,
    }


def test_clouds_yaml_names_both_services(tmp_path: Path) -> None:
    cloud = as_read(tmp_path, None)
    assert cloud["auth"]["endpoint"] == ENDPOINTS.placement
    assert cloud["compute_endpoint_override"] == f"{ENDPOINTS.compute}/v2.1"


def test_clouds_yaml_without_authentication_holds_no_secret(tmp_path: Path) -> None:
    cloud = as_read(tmp_path, None)
    assert cloud["auth_type"] == "none"
    assert cloud["auth"] == {"endpoint": "http://127.0.0.1:8778"}
