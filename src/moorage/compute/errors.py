"""What can be wrong with a request to Compute, as typed values; the API gives them their status."""

from __future__ import annotations


class ComputeError(Exception):
    """Told to the client as it stands; a bad request unless it is one of the kinds below."""


class NotFoundError(ComputeError):
    """Something that the request names does not exist, or not for this caller."""


class ConflictError(ComputeError):
    """The request is fine, the state is not."""


class ForbiddenError(ComputeError):
    """The caller may do this in general, but not now: a quota, a lock."""


class UnavailableError(ComputeError):
    """Another service that this depends on does not answer."""


class QuotaExceeded(ForbiddenError):
    pass
