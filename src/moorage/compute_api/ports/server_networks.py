"""The networks that a caller asks for, agreed to by whoever has them while the caller is there to be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from moorage.compute.errors import (
    ComputeError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnavailableError,
)
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.network.contract import (
    AgreedNetworks,
    NetworkError,
    NetworkFault,
    Networks,
    NetworkUnavailableError,
    Requester,
)

Errors = Mapping[NetworkFault, type[ComputeError]]
AT_BOOT: Errors = {
    NetworkFault.BAD_REQUEST: ComputeError,
    NetworkFault.CONFLICT: ConflictError,
    NetworkFault.FORBIDDEN: ForbiddenError,
    NetworkFault.NOT_FOUND: ComputeError,
    NetworkFault.TAKEN: ComputeError,
    NetworkFault.AMBIGUOUS: ConflictError,
}
AT_ATTACH: Errors = {
    **AT_BOOT,
    NetworkFault.NOT_FOUND: NotFoundError,
    NetworkFault.TAKEN: ConflictError,
    NetworkFault.AMBIGUOUS: ComputeError,
}
"""What the API has for the same faults differs."""


def agree(
    service: ComputeService, call: Call, networks: Networks, security_groups: Sequence[str], count: int
) -> AgreedNetworks:
    with told():
        return service.network.agree(requester_of(call), networks, security_groups, count)


def requester_of(call: Call) -> Requester:
    return Requester(call.caller.project_id or "", call.caller.token)


@contextmanager
def told(errors: Errors = AT_BOOT) -> Iterator[None]:
    """What the network says, with the status that this API has for it."""
    try:
        yield
    except NetworkError as error:
        raise errors[error.fault](str(error)) from error
    except NetworkUnavailableError as error:
        raise UnavailableError("The network service does not answer. Try again later.") from error
