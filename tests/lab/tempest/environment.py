"""Where the programs of Tempest are."""

from __future__ import annotations

from pathlib import Path

from tests.support.environments import Environment

HERE = Path(__file__).resolve().parent
TEMPEST = Environment("tempest", HERE / "requirements.txt", HERE / "constraints.txt")
