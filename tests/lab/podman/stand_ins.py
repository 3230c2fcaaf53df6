"""Images by the names that the compose file and the Containerfile have for those of a registry, made of
Debian's packages: there is no registry here to take them from.

The Debian has nothing but what it must have, as the registry's. What our packages need beside, its package
manager finds in a directory: there is no network where images are built. The neighbours come from the release
of Debian that has the same versions as the names say.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from tests.lab.podman.engine import Podman
from tests.support import debian

NAMES = {
    "debian": "docker.io/library/debian:bookworm-slim",
    "postgres": "docker.io/library/postgres:17",
    "rabbitmq": "docker.io/library/rabbitmq:4",
}
"""By the target that makes it."""
_RECIPES = Path(__file__).resolve().parent / "images"
_NEEDED = "python3 adduser ca-certificates"
_DOWNLOAD = f'chroot "$1" apt-get --yes --no-install-recommends --download-only install {_NEEDED}'


def make(podman: Podman, directory: Path) -> None:
    """Raises `Unavailable`."""
    debian.install("mmdebstrap")
    context = shutil.copytree(_RECIPES, directory)
    kept = (
        "--customize-hook",
        _DOWNLOAD,
        "--customize-hook",
        f'copy-out /var/cache/apt/archives "{context}"',
    )
    _bootstrap("bookworm", context, *kept)
    _index((context / "archives").rename(context / "archive"))
    _bootstrap("trixie", context, "--include=postgresql,rabbitmq-server")
    for target, name in NAMES.items():
        podman.run("podman", "build", "--target", target, "--tag", name, context)
    shutil.rmtree(context)


def _bootstrap(suite: str, context: Path, *options: str) -> None:
    command = ["mmdebstrap", "--quiet", "--variant=minbase", *options, suite, str(context / f"{suite}.tar")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-5000:]


def _index(archive: Path) -> None:
    """What a package manager asks for first."""
    (archive / "lock").unlink(missing_ok=True)
    entries = []
    for package in sorted(archive.glob("*.deb")):
        name = package.name.partition("_")[0]
        content = package.rename(archive / f"{name}.deb").read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        fields = subprocess.run(
            ["dpkg-deb", "--field", str(archive / f"{name}.deb")], check=True, capture_output=True, text=True
        ).stdout
        entries.append(f"{fields}Filename: ./{name}.deb\nSize: {len(content)}\nSHA256: {digest}\n")
    (archive / "Packages").write_text("\n".join(entries))
