"""The threads that all hosts of a process share, however many hosts there are."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.core.elastic_pool import ElasticPool

_TASK_PATIENCE = 0.1
"""Seconds after which a task at work costs nobody else a turn: with many hosts, each has its own bound."""


@dataclass(frozen=True)
class SharedThreads:
    beats: ElasticPool
    """For signs of life, inventories, results and what the bus brings: all short, unless a machine hangs."""
    tasks: ElasticPool
    """For what drivers do to servers, which may take its time, so that it can't keep signs of life back."""

    @classmethod
    def of_process(cls, threads: int) -> SharedThreads:
        """Where a host may do `threads` tasks at once, so many are always there."""
        return cls(ElasticPool("beats"), ElasticPool("tasks", threads + destroyers(threads), _TASK_PATIENCE))


def destroyers(threads: int) -> int:
    """How many servers a host destroys at once, whatever else it does."""
    return max(4, threads // 2)
