"""The libvirt of another host: reached as live migrations reach it, so that nothing else has to be set up."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import libvirt

from moorage.drivers.contract import DriverError
from moorage.drivers.libvirt.connection import KEEPALIVE


@contextmanager
def connected(uri: str) -> Iterator[Any]:
    """What goes wrong with it is a DriverError."""
    connection: Any = None
    try:
        connection = libvirt.open(uri)
        connection.setKeepAlive(*KEEPALIVE)
        yield connection
    except libvirt.libvirtError as error:
        raise DriverError(f"the libvirt of the other host ({uri}): {error}", retry_elsewhere=True) from error
    finally:
        if connection is not None:
            with contextlib.suppress(libvirt.libvirtError):
                connection.close()
