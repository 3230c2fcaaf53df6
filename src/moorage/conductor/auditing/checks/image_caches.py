"""Images that hosts keep for servers to come, held against what they should still keep."""

from __future__ import annotations

from moorage.bus.contract import EXPIRE_IMAGES, Task
from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.conductor.auditing import asking
from moorage.conductor.auditing.host_by_host import HostByHostCheck

_HOUR, _MIB = 3600, 1 << 20


class ImageCachesCheck(HostByHostCheck):
    name = CheckName.IMAGE_CACHES
    compares = "images that hosts keep, and those that they should"

    def _suspects(self, host: str) -> list[Suspect]:
        cached = asking.cached_images(self._tools.agents, host)
        return [
            Suspect(f"{one.name} {host}", {"image": one.name, "host": host})
            for one in cached
            if one.is_overdue
        ]

    def judge(self, suspect: Suspect) -> Drift | None:
        host, name = suspect.facts["host"], suspect.facts["image"]
        if host not in self._tools.hosts.up():
            return None
        for one in asking.cached_images(self._tools.agents, host):
            if one.name == name and one.is_overdue:
                return Drift(
                    suspect=suspect,
                    sentence=f"host {host} keeps {name} ({one.size // _MIB} MiB) in its image cache, "
                    f"which nobody has wanted for {one.idle_seconds // _HOUR} h",
                    remedy="have the host remove it",
                    safe=True,
                    host=host,
                )
        return None

    def repair(self, drift: Drift) -> None:
        """The driver looks for itself at what it removes, and servers keep what they have."""
        self._tools.cast(drift.host, [Task(0, "", EXPIRE_IMAGES, 0, "")])
