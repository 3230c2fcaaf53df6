"""Config drives as Ironic takes them.

Ironic would make one from its contents, but only with the order to deploy, which must bring nothing along. So
it is made here, and written down with the rest of the deployment.
"""

from __future__ import annotations

import base64
import gzip

from moorage.drivers import config_drive
from moorage.drivers.contract import DriverError, ServerSpec

_LARGEST = 768 * 1024
"""Of what goes to Ironic, whose API takes 1 MiB in a change of a node."""


def encoded(spec: ServerSpec) -> str:
    """The drive as Ironic takes it; an error that says so if it is too large for that."""
    disk = gzip.compress(config_drive.of(spec), mtime=0)
    text = base64.b64encode(disk).decode()
    if len(text) > _LARGEST:
        raise DriverError(
            f"the config drive is too large: {len(text) // 1024} KiB, Ironic takes {_LARGEST // 1024}"
        )
    return text
