"""The action `rescue`: which image it boots from, and what it answers."""

from __future__ import annotations

from typing import Any

from moorage.compute.errors import ComputeError, UnavailableError
from moorage.compute.imaging import rescues
from moorage.compute_api.servers.action_request import ActionRequest
from moorage.compute_api.servers.passwords import password
from moorage.compute_api.servers.servers import find
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.reply import Reply
from moorage.images.contract import Image, ImageNotFoundError, ImagesUnavailableError


def look_up(service: ComputeService, call: Call, argument: Any) -> Image | None:
    """The image of choice, if one is named."""
    with service.database.read() as connection:
        find(connection, call)
    reference = (argument or {}).get("rescue_image_ref")
    if reference is None:
        return None
    try:
        image = service.images.find(reference, call.caller.token)
    except ImageNotFoundError as error:
        raise _unsupported(reference) from error
    except ImagesUnavailableError as error:
        raise UnavailableError("The image service does not answer. Try again later.") from error
    if image.status != "active":
        raise _unsupported(reference)
    return image


def _unsupported(reference: str) -> ComputeError:
    return ComputeError(f"Requested rescue image '{reference}' is not supported")


def rescue(asked: ActionRequest) -> Reply:
    """The password is that of the machine if its driver can set one, and else means nothing."""
    chosen = (asked.argument or {}).get("adminPass") or password()
    rescues.rescue(asked.connection, asked.server, asked.origin, asked.found, chosen)
    return Reply(200, {"adminPass": chosen})
