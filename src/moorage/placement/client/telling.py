"""The answer to `why`, as plain values that carry the sentences for people along."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.placement.search.why import Explanation


def told(explanation: Explanation) -> dict[str, Any]:
    """The fields of an explanation; each failure of a near miss also has its `sentence`."""
    fields: dict[str, Any] = msgspec.to_builtins(explanation)
    for miss, shown in zip(explanation.near_misses, fields["near_misses"], strict=True):
        for failure, entry in zip(miss.failures, shown["failures"], strict=True):
            entry["sentence"] = str(failure)
    return fields
