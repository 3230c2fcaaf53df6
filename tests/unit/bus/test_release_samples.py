"""What one release says, and remembers, is understood by the one before and by the one after it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.db import declared
from tests.support import release_samples, releases
from tests.support.release_samples import DIRECTORY, sample, structs

RELEASES = sorted(path.name for path in DIRECTORY.iterdir())
OURS = [(file, name) for file, known in structs().items() for name in known]


def kept(release: str) -> dict[str, dict[str, Any]]:
    files = (DIRECTORY / release).glob("*.json")
    return {file.stem: json.loads(file.read_text()) for file in files}


@pytest.mark.parametrize("release", RELEASES)
def test_what_an_older_release_said_is_read_and_nothing_of_it_is_lost(release: str) -> None:
    """What came since then has its default; what it said is still there, under the same name."""
    known = structs()
    lost = []
    for file, samples in kept(release).items():
        for name, said in samples.items():
            read = msgspec.to_builtins(msgspec.convert(said, known[file][name]))
            lost += [f"{file}: {name}{path}" for path in missing(read, said)]
    assert lost == []


def missing(read: Any, said: Any, path: str = "") -> list[str]:
    if isinstance(said, dict) and isinstance(read, dict):
        return [
            gone
            for key, value in said.items()
            for gone in (missing(read[key], value, f"{path}.{key}") if key in read else [f"{path}.{key}"])
        ]
    if isinstance(said, list) and isinstance(read, list | tuple):
        pairs = zip(read, said, strict=True)
        return [gone for one, other in pairs for gone in missing(one, other, f"{path}[]")]
    return [] if read == said else [path]


@pytest.mark.parametrize(("file", "name"), OURS)
def test_what_only_a_newer_release_knows_is_passed_over(file: str, name: str) -> None:
    struct = structs()[file][name]
    newer = sample(struct, unknown=True)
    assert release_samples.UNKNOWN in newer
    assert msgspec.convert(newer, struct) == msgspec.convert(sample(struct), struct)


def test_the_release_before_reads_what_this_one_says() -> None:
    """By its own code; and what it writes is what was kept of it."""
    try:
        source = releases.previous()
    except releases.NotInThisClone as reason:
        pytest.skip(str(reason))
    said = json.dumps(release_samples.all_samples())
    assert run(source, said) == []
    assert run(releases.ROOT / "src", json.dumps(kept(RELEASES[-1]))) == []
    broken = {"messages": {"Task": {"operation_id": "seven"}}, "operations": {}}
    assert len(run(source, json.dumps(broken))) == 1


def run(source: Path, samples: str) -> Any:
    command = [sys.executable, "-m", "tests.support.release_samples", "--read"]
    environment = {**os.environ, "PYTHONPATH": f"{source}:{releases.ROOT}"}
    ran = subprocess.run(
        command, input=samples, env=environment, cwd=releases.ROOT, capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


def test_a_contraction_leaves_the_last_release_alone() -> None:
    """A release runs on the schema of the one after it, at least."""
    last = (DIRECTORY / RELEASES[-1] / "schema").read_text().strip()
    for migration in declared.migrations():
        if migration.revision > last:
            assert migration.oldest <= last, migration.revision
