"""The source as a builder gets it: a copy, because builders leave files behind, and take up old ones."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("pyproject.toml", "README.md", "LICENSE")


def copy_to(directory: Path) -> Path:
    """All that a wheel is made of."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in NEEDED:
        shutil.copyfile(ROOT / name, directory / name)
    without = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", directory / "src", ignore=without)
    return directory
