"""The actions `shelve` and `unshelve`: the image that a server is put into, and where it comes back."""

from __future__ import annotations

from moorage.compute.imaging import new_images, shelving
from moorage.compute.imaging.shelving import Unshelving
from moorage.compute_api.endpoint import RULE, owner_of
from moorage.compute_api.imaging import image_actions
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.servers.action_request import ActionRequest

UNSHELVE_TO_HOST = f"{RULE}os-shelve:unshelve_to_host"


def shelve(asked: ActionRequest) -> None:
    shelving.shelve(asked.connection, asked.server, asked.origin, asked.found)


def record_image(asked: ActionRequest) -> None:
    name = f"{asked.server.name}-shelved"
    new = new_images.of(asked.server, asked.origin, asked.found, name, new_images.SNAPSHOT, {})
    image_actions.record(asked, new)


def unshelve(asked: ActionRequest) -> None:
    wanted = _wanted(asked)
    if wanted.host is not None:
        asked.call.authorize(UNSHELVE_TO_HOST, owner_of(asked.server))
    zones = asked.service.zones()
    shelving.unshelve(asked.connection, asked.server, asked.origin, wanted, zones)


def _wanted(asked: ActionRequest) -> Unshelving:
    """What older versions were sent besides the name of the action meant nothing."""
    given = asked.argument
    if not given or asked.call.version < Microversion.UNSHELVE_TO_ZONE:
        return Unshelving()
    keeps_zone = "availability_zone" not in given
    return Unshelving(given.get("host"), given.get("availability_zone"), keeps_zone)
