"""What makes a request impossible to schedule before any host is looked at; each is a sentence for people."""

from __future__ import annotations


class SchedulingError(Exception):
    """Told to the user as it stands."""


class BadExtraSpecError(SchedulingError):
    """A flavor asks for something in a way that makes no sense."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"The flavor's extra spec '{key}' {problem}.")
        self.key = key


class BadImagePropertyError(SchedulingError):
    """An image asks for something in a way that makes no sense."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"The image's property '{key}' {problem}.")
        self.key = key


class NoHostAllowedError(SchedulingError):
    """A prefilter leaves no host at all, so that there is nothing to ask Placement."""
