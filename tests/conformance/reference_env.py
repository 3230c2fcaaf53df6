"""`.venvs/reference`: the reference Placement service in an environment of its own.

Run as a script to create it ahead of time:

    python -m tests.conformance.reference_env
"""

from __future__ import annotations

from pathlib import Path

from tests.support.environments import Environment

HERE = Path(__file__).resolve().parent
REFERENCE = Environment("reference", HERE / "reference-requirements.txt", HERE / "reference-constraints.txt")


def reference_bin() -> Path:
    return REFERENCE.bin()


if __name__ == "__main__":
    print(reference_bin())
