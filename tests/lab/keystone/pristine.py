"""A Keystone database and keys with nothing in them but the administrator, made once and then copied.

Creating the schema takes Keystone a quarter of a minute; a copy takes no time.
"""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import shutil
import subprocess
from pathlib import Path

from tests.lab.keystone import settings as settings_module
from tests.lab.keystone.settings import ADMIN_PASSWORD, REGION, settings
from tests.support.environments import Environment
from tests.support.profiles import ini

HERE = Path(__file__).resolve().parent
KEYSTONE = Environment("keystone", HERE / "requirements.txt", HERE / "constraints.txt")


def pristine_state() -> Path:
    """The directory to copy from. New versions, or a change of how it is made, make a new one."""
    programs = KEYSTONE.bin()
    recipe = Path(__file__).read_bytes() + Path(settings_module.__file__).read_bytes()
    state = KEYSTONE.directory / f"pristine-{hashlib.sha256(recipe).hexdigest()[:12]}"
    with KEYSTONE.locked():
        if not state.exists():
            unfinished = state.with_name(f"{state.name}.new")
            shutil.rmtree(unfinished, ignore_errors=True)
            _make(programs, unfinished)
            unfinished.rename(state)
    return state


def _make(programs: Path, state: Path) -> None:
    state.mkdir()
    (state / "keystone.conf").write_text(ini(settings(state)))
    owner = ["--keystone-user", pwd.getpwuid(os.geteuid()).pw_name]
    owner += ["--keystone-group", grp.getgrgid(os.getegid()).gr_name]
    for command in (
        ["db_sync"],
        ["fernet_setup", *owner],
        ["credential_setup", *owner],
        ["bootstrap", "--bootstrap-password", ADMIN_PASSWORD, "--bootstrap-region-id", REGION],
    ):
        manage = [str(programs / "keystone-manage"), "--config-file", str(state / "keystone.conf"), *command]
        subprocess.run(
            manage, check=True, capture_output=True, env={**os.environ, "PYTHONWARNINGS": "ignore"}
        )
