"""The seed of what the conformance tests make up.

It is fixed by default, so that a change is judged by itself and not by its luck; MOORAGE_SEED=random
looks for what nobody has found yet, and any number repeats a run.
"""

from __future__ import annotations

import os
import random

_DEFAULT = 3631158138


def seed() -> int:
    chosen = os.environ.get("MOORAGE_SEED")
    if chosen == "random":
        return random.SystemRandom().getrandbits(32)
    return int(chosen) if chosen else _DEFAULT


SEED = seed()
