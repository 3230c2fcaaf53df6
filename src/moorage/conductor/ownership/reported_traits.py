"""Traits that the owners of a shared node have ever told Placement of, kept with the node's facts.

An owner takes away only traits that an owner gave: others were set by hand. What an earlier one gave, only it
remembers; so it is kept here, and told to the next one. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRAITS = "traits"

Facts = Mapping[str, Any]


def kept(written: Facts, said: Facts) -> dict[str, Any]:
    """What is to be written down: what the owner says, and every trait that was ever said."""
    traits = sorted({*written.get(TRAITS, ()), *said.get(TRAITS, ())})
    return {**said, TRAITS: traits} if traits else dict(said)


def unsaid(written: Facts, said: Facts) -> list[str]:
    """What an earlier owner, or this one earlier, said and it does not say now."""
    return sorted({*written.get(TRAITS, ())} - {*said.get(TRAITS, ())})
