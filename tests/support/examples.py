"""How many examples a property test tries: some at each run, to be quick; all by `make conformance`."""

from __future__ import annotations

import os

_SHARE = float(os.environ.get("MOORAGE_EXAMPLES") or 0.1)


def examples(many: int) -> int:
    """Out of `many`, which is what a thorough run tries."""
    return max(10, round(many * _SHARE))
