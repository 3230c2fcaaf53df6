"""The networks that a caller asks for, agreed to by whoever has them while the caller is there to be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from moorage.compute.errors import ComputeError, ConflictError, ForbiddenError, UnavailableError
from moorage.compute.service import ComputeService
from moorage.http.call import Call
from moorage.network.contract import Agreed, Asker, Fault, NetworkError, Networks, NetworkUnavailableError

_ERRORS: dict[Fault, type[ComputeError]] = {
    Fault.BAD_REQUEST: ComputeError,
    Fault.CONFLICT: ConflictError,
    Fault.FORBIDDEN: ForbiddenError,
}


def agree(
    service: ComputeService, call: Call, networks: Networks, security_groups: Sequence[str], count: int
) -> Agreed:
    with told():
        return service.network.agree(asker_of(call), networks, security_groups, count)


def asker_of(call: Call) -> Asker:
    return Asker(call.caller.project_id or "", call.caller.token)


@contextmanager
def told() -> Iterator[None]:
    """What the network says, with the status that this API has for it."""
    try:
        yield
    except NetworkError as error:
        raise _ERRORS[error.fault](str(error)) from error
    except NetworkUnavailableError as error:
        raise UnavailableError("The network service does not answer. Try again later.") from error
