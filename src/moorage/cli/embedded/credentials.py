"""What an operator needs to talk to a Moorage that was started without any preparation.

The password is made once and kept in the data directory, so that clients still work after a restart.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from moorage.compute_api.microversions import Microversion
from moorage.core import private
from moorage.core.microversions import text
from moorage.http.auth import hash_password

USER = "admin"


@dataclass(frozen=True)
class Credentials:
    user: str
    password: str
    password_file: Path
    """Lines of user:bcrypt-hash, which the service reads."""


def of_directory(directory: Path) -> Credentials:
    """The credentials kept in `directory`, made up on first use."""
    plain = directory / "password"
    hashed = directory / "htpasswd"
    for path in (plain, hashed):
        private.tighten(path)
    if not (plain.exists() and hashed.exists()):
        password = secrets.token_urlsafe(24)
        write_private(plain, password + "\n")
        write_private(hashed, f"{USER}:{hash_password(password)}\n")
    return Credentials(USER, plain.read_text().strip(), hashed)


@dataclass(frozen=True)
class Endpoints:
    placement: str
    compute: str


def clouds_yaml(endpoints: Endpoints, credentials: Credentials | None) -> str:
    """A `clouds.yaml` with which any OpenStack client reaches this Moorage, as cloud "moorage".

    Without a catalogue there is one endpoint for all services, and overrides for the others; the Identity
    service is not there, but clients read a version document where it would be. The version of the Compute
    API is one that `--os-compute-api-version` may overrule, which clients refuse of a `default_microversion`.
    """
    endpoint = endpoints.placement
    lines = ["clouds:", "  moorage:"]
    if credentials is None:
        lines += ["    auth_type: none", "    auth:", f"      endpoint: {endpoint}"]
    else:
        lines += [
            "    auth_type: http_basic",
            "    auth:",
            f"      endpoint: {endpoint}",
            f"      username: {credentials.user}",
            f"      password: {credentials.password}",
        ]
    lines += [
        "    placement_api_version: '1.39'",
        f"    compute_endpoint_override: {endpoints.compute}/v2.1",
        f"    compute_api_version: '{text(Microversion.highest())}'",
        "    identity_api_version: '3'",
        f"    identity_endpoint_override: {endpoints.compute}/v2.1",
        "    image_api_version: '2'",
        f"    image_endpoint_override: {endpoints.compute}/image",
    ]
    return "\n".join(lines) + "\n"


def write_private(path: Path, text: str, like: os.stat_result | None = None) -> None:
    """Write a file that nobody else may read, and that is never half-written; with `like`, it has the owner
    and the mode of that one from the beginning."""
    unfinished = path.with_name(path.name + ".new")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, 0o600)
        if like is not None:
            os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, like.st_mode & 0o777)
        file.write(text)
    unfinished.replace(path)
