"""Reports in portions that one request or transaction can carry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moorage.placement.client.contract import ReportedProvider

LARGEST = 2000
"""Below what the bulk report takes at once: no transaction holds its locks for long, and no body is too
large, however much there is to say of each provider."""


def in_chunks(
    providers: Sequence[ReportedProvider], largest: int = LARGEST
) -> Iterator[list[ReportedProvider]]:
    """Parents come no later than their children, since a parent must exist when it is named."""
    ordered = parents_first(providers)
    for start in range(0, len(ordered), largest):
        yield ordered[start : start + largest]


def parents_first(providers: Sequence[ReportedProvider]) -> list[ReportedProvider]:
    waiting = {provider.uuid: provider for provider in providers}
    ordered: list[ReportedProvider] = []
    for provider in providers:
        branch = []
        node: ReportedProvider | None = provider
        while node is not None and waiting.pop(node.uuid, None) is not None:
            branch.append(node)
            node = waiting.get(node.parent_provider_uuid) if node.parent_provider_uuid else None
        ordered += reversed(branch)
    return ordered
