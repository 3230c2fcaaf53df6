"""Too much: what a request would use beyond a limit, and the sentence for whoever asked.

A limit of Keystone's goes by its name there, and is told as the reference tells it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moorage.compute.errors import QuotaExceeded
from moorage.compute.quotas.quotas import UNLIMITED, Limits

CLASS = "class:"
"""What the names of limits of Placement's resource classes begin with."""

UNIFIED_NAMES: Mapping[str, str] = {
    "instances": "servers",
    "cores": "class:VCPU",
    "ram": "class:MEMORY_MB",
    "metadata_items": "server_metadata_items",
    "injected_files": "server_injected_files",
    "injected_file_content_bytes": "server_injected_file_content_bytes",
    "injected_file_path_length": "server_injected_file_path_bytes",
    "key_pairs": "server_key_pairs",
    "server_groups": "server_groups",
    "server_group_members": "server_group_members",
}
"""What Keystone calls our quotas."""


class UnifiedBounds(dict[str, int]):
    """Limits of Keystone's, by our names; those of further resource classes by Keystone's."""

    def __init__(self, project_id: str, bounds: Limits, further: int) -> None:
        super().__init__(bounds)
        self.project_id = project_id
        self.further = further
        """What holds for a resource class that nobody set a limit for."""

    def __missing__(self, name: str) -> int:
        if name.startswith(CLASS):
            return self.further
        raise KeyError(name)


@dataclass(frozen=True)
class Overrun:
    name: str
    limit: int
    used: int
    more: int

    def __str__(self) -> str:
        name = UNIFIED_NAMES.get(self.name, self.name)
        return (
            f"Resource {name} is over limit of {self.limit} due to current usage {self.used} and "
            f"delta {self.more}"
        )


def exceeds(limit: int, amount: int) -> bool:
    return limit != UNLIMITED and amount > limit


def require_room(limits: Limits, name: str, used: int, more: int, otherwise: str) -> None:
    """For what no project has as a whole; `otherwise` is said where the limit is one of ours."""
    if not exceeds(limits[name], used + more):
        return
    if not isinstance(limits, UnifiedBounds):
        raise QuotaExceeded(otherwise)
    raise over_limit(None, [Overrun(name, limits[name], used, more)])


def over_limit(project_id: str | None, over: Sequence[Overrun]) -> QuotaExceeded:
    """In the words for Keystone's limits."""
    told = ", ".join(str(each) for each in over)
    return QuotaExceeded(f"Project {project_id} is over a limit for [{told}]")
