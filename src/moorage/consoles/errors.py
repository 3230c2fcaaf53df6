"""Why somebody sees no console."""

from __future__ import annotations


class NotAdmittedError(Exception):
    """Told to the log, not to the caller: who guesses tokens learns nothing."""


class ConsoleUnreachableError(Exception):
    """The console itself does not answer, or not as one would."""


class ConsoleHungUpError(ConsoleUnreachableError):
    """In the middle of what had to be said."""


class ConsoleInsecureError(ConsoleUnreachableError):
    """It answers, but not by TLS, or nobody knows who it is: nothing is said to it."""
