"""What an image says of its architecture, hypervisor and mode must be among what the node can run."""

from __future__ import annotations

from moorage.scheduler.criteria import Criteria, ImageNeeds
from moorage.scheduler.filters.contract import Reason, ReasonKind
from moorage.scheduler.hosts import HostState


class ImagePropertiesFilter:
    name = "image properties"

    def applies(self, request: Criteria) -> bool:
        return bool(request.image)

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        image = request.image
        if any(_suits(image, offered) for offered in host.supported):
            return None
        said = (image.architecture, image.hypervisor_type, image.vm_mode)
        return Reason(ReasonKind.IMAGE_NOT_SUPPORTED, ", ".join(filter(None, said)))


def _suits(image: ImageNeeds, offered: tuple[str, str, str]) -> bool:
    wanted = (image.architecture, image.hypervisor_type, image.vm_mode)
    return all(not need or need == have for need, have in zip(wanted, offered, strict=True))
