"""Start Horizon beside a Keystone, unmodified: its settings are found before its own package's are."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.lab.keystone.service import Keystone
from tests.lab.wsgi import serve
from tests.support.environments import Environment
from tests.support.processes import Service, free_port

HERE = Path(__file__).resolve().parent
HORIZON = Environment("horizon", HERE / "requirements.txt", HERE / "constraints.txt")
SETTINGS = HERE / "settings"


def start(directory: Path, keystone: Keystone) -> Service:
    directory.mkdir()
    variables = {**_variables(static_files(), keystone.url), "LANG": "C.UTF-8"}
    return serve(
        *(HORIZON, "with_static_files:application", directory, free_port(), variables),
        path="/auth/login/",
        threads=8,
    )


def static_files() -> Path:
    """Scripts and style sheets, collected and compressed once, as whoever installs Horizon does."""
    programs = HORIZON.bin()
    made = HORIZON.directory / "static"
    with HORIZON.locked():
        if not made.exists():
            unfinished = made.with_name("static.new")
            shutil.rmtree(unfinished, ignore_errors=True)
            for command in (["collectstatic", "--noinput"], ["compress", "--force"]):
                subprocess.run(
                    [str(programs / "python"), "-m", "django", *command, "--verbosity", "0"],
                    env={**os.environ, **_variables(unfinished, "")},
                    check=True,
                    capture_output=True,
                )
            unfinished.rename(made)
    return made


def _variables(static: Path, keystone_url: str) -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "openstack_dashboard.settings",
        "PYTHONPATH": str(SETTINGS),
        "PYTHONWARNINGS": "ignore",
        "HORIZON_STATIC_ROOT": str(static),
        "HORIZON_KEYSTONE_URL": keystone_url,
    }
