"""A Keystone database and keys with nothing in them but the administrator."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

from tests.lab.keystone import settings as settings_module
from tests.lab.keystone.settings import ADMIN_PASSWORD, REGION, settings
from tests.lab.pristine import kept, run
from tests.support.environments import Environment
from tests.support.profiles import ini

HERE = Path(__file__).resolve().parent
KEYSTONE = Environment("keystone", HERE / "requirements.txt", HERE / "constraints.txt")


def pristine_state() -> Path:
    """The directory to copy from."""
    return kept(KEYSTONE, "pristine", _make, Path(__file__), Path(settings_module.__file__))


def _make(programs: Path, state: Path) -> None:
    (state / "keystone.conf").write_text(ini(settings(state)))
    owner = ["--keystone-user", pwd.getpwuid(os.geteuid()).pw_name]
    owner += ["--keystone-group", grp.getgrgid(os.getegid()).gr_name]
    for command in (
        ["db_sync"],
        ["fernet_setup", *owner],
        ["credential_setup", *owner],
        ["bootstrap", "--bootstrap-password", ADMIN_PASSWORD, "--bootstrap-region-id", REGION],
    ):
        run(programs / "keystone-manage", "--config-file", state / "keystone.conf", *command)
