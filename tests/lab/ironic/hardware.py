"""Interfaces for fake hardware that do more than Ironic's own fakes: what a node names, it has.

- Console `lab`: Ironic's own way with `socat`, on the port `lab_console_port` of the node's `driver_info`;
  what is typed there comes back.
- Deploy `lab`: a node can't be deployed, or be cleaned, as long as its `extra` says why, as
  `lab_deploy_fails` or `lab_cleaning_fails`.
- Rescue `lab`: fails for a node whose `extra` says `lab_rescue_fails`, as a ramdisk that never calls back.
- Management `lab`: counts interrupts in `driver_internal_info`, as `lab_interrupts`.
"""

from __future__ import annotations

from pathlib import Path

_NAME = "ironic_hardware_of_the_tests"
_KINDS = {"console": "SocatConsole", "deploy": "Deploy", "management": "Management", "rescue": "Rescue"}
_CODE = """
from ironic.common import exception
from ironic.drivers import base
from ironic.drivers.modules import console_utils, fake


class SocatConsole(base.ConsoleInterface):
    def get_properties(self):
        return {}

    def validate(self, task):
        pass

    def _port(self, task):
        return int(task.node.driver_info["lab_console_port"])

    def start_console(self, task):
        console_utils.start_socat_console(task.node.uuid, self._port(task), "/bin/cat")

    def stop_console(self, task):
        console_utils.stop_socat_console(task.node.uuid)

    def get_console(self, task):
        return {"type": "socat", "url": console_utils.get_socat_console_url(self._port(task))}


class Deploy(fake.FakeDeploy):
    @base.deploy_step(priority=100)
    def deploy(self, task):
        super().deploy(task)
        reason = task.node.extra.get("lab_deploy_fails")
        if reason:
            raise exception.InstanceDeployFailure(reason)

    def prepare_cleaning(self, task):
        reason = task.node.extra.get("lab_cleaning_fails")
        if reason:
            raise exception.NodeCleaningFailure(node=task.node.uuid, reason=reason)
        return super().prepare_cleaning(task)


class Rescue(fake.FakeRescue):
    def rescue(self, task):
        if task.node.extra.get("lab_rescue_fails"):
            raise exception.InstanceRescueFailure(
                instance=task.node.instance_uuid, node=task.node.uuid, reason="the ramdisk does not call back"
            )
        return super().rescue(task)

    def clean_up(self, task):
        pass


class Management(fake.FakeManagement):
    def inject_nmi(self, task):
        count = task.node.driver_internal_info.get("lab_interrupts", 0)
        task.node.set_driver_internal_info("lab_interrupts", count + 1)
        task.node.save()
"""


def install(directory: Path) -> Path:
    """A directory from which Ironic finds them as any plugin of somebody else's."""
    place = directory / "hardware"
    described = place / f"{_NAME}-1.dist-info"
    described.mkdir(parents=True, exist_ok=True)
    (place / f"{_NAME}.py").write_text(_CODE)
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: 1\n")
    groups = (f"[ironic.hardware.interfaces.{kind}]\nlab = {_NAME}:{name}\n" for kind, name in _KINDS.items())
    (described / "entry_points.txt").write_text("\n".join(groups))
    return place
