"""Whether a server may run here: it is another host's, if that one has taken it over."""

from __future__ import annotations

import libvirt
import msgspec

from moorage.drivers.contract import DriverError
from moorage.drivers.libvirt.moves import peer
from moorage.drivers.libvirt.storage.server_directory import Departure, ServerDirectory


def require_here(directory: ServerDirectory) -> None:
    """DriverError if it was taken over by another host, or was sent there and is there still.

    What was handed over is not any more: first that is said, then it is looked whether somebody has taken it.
    Who takes it over says that first, and then looks whether it is still handed over. So not both go on.
    """
    record = directory.require()
    if record.token and not record.is_expected:
        (directory.path / record.token).unlink(missing_ok=True)
        record = directory.write(msgspec.structs.replace(record, token=""))
    owner = directory.owner()
    if owner not in ("", directory.node_uuid):
        raise DriverError(f"server {directory.server_uuid} is node {owner}'s now")
    if record.is_expected:
        raise DriverError(f"server {directory.server_uuid} has not come yet")
    if record.departure is not None and record.departure.arrived:
        if _is_there(directory.server_uuid, record.departure):
            raise DriverError(f"server {directory.server_uuid} has gone to node {record.departure.node_uuid}")
        directory.write(msgspec.structs.replace(record, departure=None))


def _is_there(server_uuid: str, departure: Departure) -> bool:
    with peer.connected(departure.uri) as connection:
        try:
            connection.lookupByUUIDString(server_uuid)
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                return False
            raise
        return True
