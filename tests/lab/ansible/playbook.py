"""Run a playbook on this machine, as a user of a cloud does: with a clouds.yaml."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lab.ansible.collection import ANSIBLE, collections
from tests.lab.client.openstack import without_cloud

_RECAP = re.compile(r"localhost +: +ok=(\d+) +changed=(\d+)")
_TASK = re.compile(r"^TASK \[(.+?)\]", re.M)


class PlaybookError(Exception):
    """A task failed; the text is what Ansible printed."""


def play(playbook: Path, clouds_file: Path, directory: Path, variables: Mapping[str, Any]) -> list[str]:
    """The tasks that changed something."""
    directory.mkdir(exist_ok=True)
    surroundings = {
        "ANSIBLE_COLLECTIONS_PATH": str(collections()),
        "ANSIBLE_HOME": str(directory),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_NOCOLOR": "true",
        "LC_ALL": "C.UTF-8",
        "OS_CLIENT_CONFIG_FILE": str(clouds_file),
        "PYTHONWARNINGS": "ignore",
    }
    programs = ANSIBLE.bin()
    told = json.dumps({"ansible_python_interpreter": str(programs / "python"), **variables})
    where = ["--inventory", "localhost,", "--extra-vars", told]
    ran = subprocess.run(
        [str(programs / "ansible-playbook"), *where, str(playbook)],
        env={**without_cloud(os.environ), **surroundings},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise PlaybookError(ran.stdout + ran.stderr)
    recap = _RECAP.search(ran.stdout)
    assert recap is not None, ran.stdout
    changed = _changed(ran.stdout)
    assert len(changed) == int(recap[2]), ran.stdout
    return changed


def _changed(printed: str) -> list[str]:
    """What Ansible prints of a task begins with its name."""
    parts = _TASK.split(printed)
    return [name for name, result in zip(parts[1::2], parts[2::2], strict=True) if "\nchanged: " in result]
