"""Devices that an image says it needs, as traits of the node: buses, screens, network cards, firmware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import os_traits

from moorage.scheduler.request import Request

_TRAITS = {
    "hw_disk_bus": "COMPUTE_STORAGE_BUS_",
    "hw_cdrom_bus": "COMPUTE_STORAGE_BUS_",
    "hw_video_model": "COMPUTE_GRAPHICS_MODEL_",
    "hw_vif_model": "COMPUTE_NET_VIF_MODEL_",
    "hw_firmware_type": "COMPUTE_FIRMWARE_",
}
"""By image property, how the trait for its value begins."""
_KNOWN = frozenset(os_traits.get_traits())


@dataclass(frozen=True, slots=True)
class ImageHardware:
    properties: Mapping[str, str]

    def narrow(self, request: Request) -> Request:
        """What there is no trait for can't be asked for: the driver has the last word anyway."""
        wanted = frozenset(
            prefix + str(self.properties[name]).upper().replace("-", "_")
            for name, prefix in _TRAITS.items()
            if self.properties.get(name)
        )
        traits = wanted & _KNOWN
        return request.narrowed(lambda group: group.requiring(traits)) if traits else request
