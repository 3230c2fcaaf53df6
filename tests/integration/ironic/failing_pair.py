"""Two machines of a class of their own, one of which fails, as operators see them."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.integration.ironic.site import Site, only
from tests.lab.client.openstack import openstack
from tests.support.moorage import PROGRAMS
from tests.support.processes import wait_until

CLASS = "iron"
UNDEPLOYABLE, UNCLEANABLE = "the disk does not answer", "no ramdisk came up"


class FailingPair:
    """Their host keeps out what failed twice."""

    def __init__(self, site: Site, host: str, group: str) -> None:
        self._site = site
        self._config = site.cloud.directory / f"{host}.conf"
        site.cloud.make_flavor(CLASS, only(iron=1))
        self.broken = site.metal.enrol("broken", group, CLASS, deploy_interface="lab")
        self.sound = site.metal.enrol("sound", group, CLASS)
        agent = site.cloud.agents[host]
        agent.end()
        site.cloud.configure_agent(host, site.shape.serving(partition_key=group, quarantine_after="2"))
        agent.start()
        both = {self.broken, self.sound}
        wait_until(lambda: both <= set(site.cloud.providers()), "the machines", 60)
        site.wait_until_free(*both)

    def boot(self, name: str) -> str:
        return self._site.boot(name, flavorRef=CLASS)

    def fails(self, *, deploy: str = "", clean: str = "") -> None:
        """From now on the one fails with these reasons, or not any more."""
        said = {"extra/lab_deploy_fails": deploy, "extra/lab_cleaning_fails": clean}
        self._site.metal.change(self.broken, **said)

    def take_out_sound(self) -> None:
        self._site.metal.ask("PUT", f"nodes/{self.sound}/maintenance", {"reason": "it is looked at"})
        wait_until(lambda: self.reserved(self.sound) == 1, "the machine to be out of the way", 60)

    def bring_back_sound(self) -> None:
        self._site.metal.ask("DELETE", f"nodes/{self.sound}/maintenance")
        self._site.wait_until_free(self.sound)

    def reserved(self, node: str) -> int:
        answer = self._site.cloud.get_placement(f"/resource_providers/{node}/inventories")
        return sum(unit["reserved"] for unit in answer["inventories"].values())

    def status(self) -> str:
        clouds = self._site.cloud.clouds_file(0)
        return str(openstack(clouds, "moorage", "hypervisor", "show", self.broken)["status"])

    def why_kept_out(self) -> str:
        """The client does not show it."""
        shown = self._site.cloud.get(f"/v2.1/os-hypervisors/{self.broken}")["hypervisor"]
        return str(shown["service"]["disabled_reason"] or "")

    def wait_for_quarantine(self) -> None:
        wait_until(lambda: "in quarantine" in self.why_kept_out(), "the quarantine", 60)

    def failures(self) -> list[dict[str, Any]]:
        """What befell the one, newest first."""
        listed = json.loads(self._nodes("--failed", "--json"))
        return next((one["failures"] for one in listed if one["uuid"] == self.broken), [])

    def quarantined(self) -> list[str]:
        listed = json.loads(self._nodes("--state", "quarantine", "--json"))["nodes"]
        return [one["uuid"] for one in listed]

    def release(self) -> str:
        config = str(self._site.cloud.config)
        return _run("moorage-manage", "--config-file", config, "ironic", "release", self.broken)

    def _nodes(self, *arguments: str) -> str:
        """As on a machine that has the database, and reaches Ironic."""
        files = ("--config-file", str(self._site.cloud.config), "--config-file", str(self._config))
        return _run("moorage", "nodes", *files, *arguments)


def _run(program: str, *arguments: str) -> str:
    command = [str(PROGRAMS / program), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
