"""What can be wrong with a request about a server."""

from __future__ import annotations

from moorage.compute.errors import ComputeError, ConflictError, NotFoundError


class ServerNotFound(NotFoundError):
    def __init__(self, uuid: str) -> None:
        super().__init__(f"Instance {uuid} could not be found.")


class ServerLocked(ConflictError):
    def __init__(self, uuid: str) -> None:
        super().__init__(f"Instance {uuid} is locked")


class ServerNotReady(ConflictError):
    """It has no host yet."""

    def __init__(self, uuid: str) -> None:
        super().__init__(f"Instance {uuid} is not ready")


class MachineLost(ConflictError):
    """Nothing can be done with it any more."""

    def __init__(self, uuid: str) -> None:
        super().__init__(
            f"The machine of instance {uuid} does not exist any more: the instance can only be deleted."
        )


class ServiceUnavailable(ConflictError):
    """Its host is down."""

    def __init__(self) -> None:
        super().__init__("Service is unavailable at this time.")


class InvalidState(ConflictError):
    def __init__(self, action: str, uuid: str, attribute: str, state: str | None) -> None:
        super().__init__(f"Cannot '{action}' instance {uuid} while it is in {attribute} {state}")


class MarkerNotFound(ComputeError):
    def __init__(self, marker: str) -> None:
        super().__init__(f"marker [{marker}] not found")
