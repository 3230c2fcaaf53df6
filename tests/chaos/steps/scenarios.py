"""How an operation of each kind comes about, the good way and the bad ways; and what the server is then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from moorage.db.tables.compute import servers
from moorage.ledger import leasing, queue
from tests.chaos.steps.clouds import HOSTS
from tests.chaos.steps.hooks import BANDWIDTH, STANDS_STILL
from tests.chaos.steps.user import User
from tests.support.processes import wait_until
from tests.support.stage_neutron import NETWORK

Ready = Callable[[User], str]
Ask = Callable[[User, str], None]
_GROUP = {"id": "a1", "required": [], "resources": BANDWIDTH}
_STILL = {STANDS_STILL: "yes"}


@dataclass(frozen=True)
class Scenario:
    kind: str
    ready: Ready
    """What has to be there first; the server, if there is one."""
    ask: Ask
    status: str | None
    """What the server is then; None: there is none."""
    way: str = ""
    """What is special about it."""
    outcome: str = "done"

    @property
    def name(self) -> str:
        return f"{self.kind} {self.way}".strip()


def _nothing(_user: User) -> str:
    return ""


def _running(user: User, **fields: Any) -> str:
    return user.running(**fields)


def _prone(step: str, **fields: Any) -> Ready:
    """A server whose host fails it, and has known that since it got it."""
    return lambda user: user.running(metadata={f"fake:{step}": "fail"}, **fields)


def _after(*bodies: dict[str, Any]) -> Ready:
    def ready(user: User) -> str:
        uuid = _running(user)
        for body in bodies:
            user.act(uuid, body)
            user.await_rest()
        return uuid

    return ready


def _but(ready: Ready, metadata: dict[str, str]) -> Ready:
    """From now on something is the matter with it."""

    def then(user: User) -> str:
        uuid = ready(user)
        user.set_metadata(uuid, metadata)
        return uuid

    return then


def _in_place(ready: Ready) -> Ready:
    """No other host will do."""

    def then(user: User) -> str:
        uuid = ready(user)
        for host in HOSTS:
            if host != user.row(uuid).host:
                user.set_disabled(host, disabled=True)
        return uuid

    return then


def _resized(user: User) -> str:
    uuid = _in_place(_running)(user)
    user.act(uuid, {"resize": {"flavorRef": "2"}})
    user.await_rest()
    return uuid


def _softly_deleted(user: User) -> str:
    uuid = _running(user)
    user.call("DELETE", f"/v2.1/servers/{uuid}")
    user.await_rest()
    return uuid


def _gone(user: User) -> str:
    uuid = _running(user)
    user.act(uuid, {"forceDelete": None})
    user.await_rest()
    return uuid


def _in_mid_move(user: User) -> str:
    """Its destination hangs."""
    uuid = _running(user)
    user.set_metadata(uuid, {"fake:take_over": "hang"})
    user.act(uuid, {"migrate": None})
    wait_until(lambda: user.unfinished() == ["cold_move/taken_over"], "the server to be in mid-move", 20)
    return uuid


def _on_its_way(user: User) -> str:
    """Its source is at it, and does not get any further."""
    uuid = user.running(metadata={"fake:live_migrate": "hang"})
    user.act(uuid, _LIVE)
    wait_until(lambda: user.unfinished() == ["live_migrate/migrated"], "the server to be on its way", 20)
    return uuid


def _lose_source(user: User, uuid: str) -> None:
    user.set_down(user.row(uuid).host, down=True)


def _bare(user: User) -> str:
    return _running(user, networks="none")


def _attached(user: User) -> str:
    uuid = _bare(user)
    _attach(user, uuid)
    return uuid


def _demanding(ready: Ready) -> Ready:
    """Ports need bandwidth."""

    def then(user: User) -> str:
        user.cloud.neutron.needs = {"request_groups": [_GROUP]}
        return ready(user)

    return then


def _act(body: dict[str, Any], version: str = "2.96") -> Ask:
    return lambda user, uuid: user.act(uuid, body, version)


def _boot(**fields: Any) -> Ask:
    return lambda user, _uuid: user.boot(**fields)


def _delete(user: User, uuid: str) -> None:
    user.accept(user.call("DELETE", f"/v2.1/servers/{uuid}"))


def _attach(user: User, uuid: str) -> None:
    body = {"interfaceAttachment": {"net_id": NETWORK}}
    user.call("POST", f"/v2.1/servers/{uuid}/os-interface", body)


def _detach(user: User, uuid: str) -> None:
    path = f"/v2.1/servers/{uuid}/os-interface"
    (interface,) = user.get(path)["interfaceAttachments"]
    user.accept(user.call("DELETE", f"{path}/{interface['port_id']}"))


def _add_address(user: User, uuid: str) -> None:
    user.act(uuid, {"addFixedIp": {"networkId": NETWORK}}, "2.43")


def _two_addresses(user: User) -> str:
    uuid = _running(user)
    _add_address(user, uuid)
    user.await_rest()
    return uuid


def _remove_address(user: User, uuid: str) -> None:
    ((address, *_),) = user.row(uuid).addresses.values()
    user.act(uuid, {"removeFixedIp": {"address": address["addr"]}}, "2.43")


def _rebuild(user: User, uuid: str) -> None:
    user.act(uuid, {"rebuild": {"imageRef": user.row(uuid).image_ref}})


def _evacuate(version: str = "2.96") -> Ask:
    def ask(user: User, uuid: str) -> None:
        user.set_down(user.row(uuid).host, down=True)
        user.act(uuid, {"evacuate": {}}, version)

    return ask


def _press(tag: str, power: int) -> Ask:
    """Somebody presses the button of the machine, and Ironic tells of it."""

    def ask(user: User, uuid: str) -> None:
        (user.cloud.directory / "buttons" / uuid).write_text(str(power))
        event = {"name": "power-update", "server_uuid": uuid, "tag": tag}
        user.accept(user.call("POST", "/v2.1/os-server-external-events", {"events": [event]}))

    return ask


def _enqueue(user: User, uuid: str, kind: str, data: dict[str, Any]) -> None:
    with user.writing() as connection:
        server = connection.execute(sa.select(servers.c.id).where(servers.c.uuid == uuid)).scalar_one()
        queue.enqueue(connection, server, kind, data)


def _give_back(user: User, uuid: str) -> None:
    """A conductor whose lease had ended has made ports and a claim for a server that is gone."""
    _enqueue(user, uuid, leasing.GIVE_BACK, {})


def _discard_image(user: User, uuid: str) -> None:
    """A snapshot was cut short."""
    image = user.call("POST", "/image/v2/images", {"name": "torso", "visibility": "private"})
    _enqueue(user, uuid, "discard_image", {"image_id": image.json()["id"]})


def _held_nothing(user: User) -> str:
    """What it holds is gone from Placement."""
    uuid = _running(user)
    user.placement("DELETE", f"/allocations/{uuid}")
    return uuid


def _held_elsewhere(user: User) -> str:
    """Beside what is its own."""
    uuid = _running(user)
    held = user.placement("GET", f"/allocations/{uuid}")
    other = next(host for host in HOSTS if host != user.row(uuid).host)
    held["allocations"][user.node_of(other)] = {"resources": {"VCPU": 1}}
    user.placement("PUT", f"/allocations/{uuid}", held)
    return uuid


def _stray_port(user: User) -> str:
    """One was made for it, and it was told of another."""
    uuid = _running(user)
    (port,) = user.cloud.neutron.ports_of(uuid)
    user.cloud.neutron.copy_port(port["id"])
    return uuid


def _audit(check: str) -> Ask:
    def ask(user: User, _uuid: str) -> None:
        body = {"audit": {"only": [check], "repair": "all"}}
        user.accept(user.call("POST", "/v2.1/moorage-audits", body))

    return ask


_SHELVED = _after({"shelve": None})
_OFFLOADED = _after({"shelve": None}, {"shelveOffload": None})
_MOVED = _after({"migrate": None})
_BACKED_UP = {"createBackup": {"name": "backup", "backup_type": "daily", "rotation": 1}}
_LIVE = {"os-migrateLive": {"host": None, "block_migration": "auto"}}

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("build", _nothing, _boot(), "ACTIVE"),
    Scenario("build", _nothing, _boot(metadata=_STILL), "ACTIVE", "that stands still until it is plugged"),
    Scenario("build", _nothing, _boot(metadata={"fake:spawn": "fail_here"}), "ERROR", "that fails", "failed"),
    Scenario("delete", _running, _act({"forceDelete": None}), None),
    Scenario("delete", _MOVED, _act({"forceDelete": None}), None, "in mid-move"),
    Scenario("soft_delete", _running, _delete, "SOFT_DELETED"),
    Scenario("restore", _softly_deleted, _act({"restore": None}), "ACTIVE"),
    Scenario("give_back", _gone, _give_back, None),
    Scenario("mend", _held_nothing, _audit("allocations"), "ACTIVE"),
    Scenario("mend", _held_elsewhere, _audit("allocations"), "ACTIVE", "of what is elsewhere"),
    Scenario("mend", _stray_port, _audit("ports"), "ACTIVE", "of a port"),
    Scenario("start", _after({"os-stop": None}), _act({"os-start": None}), "ACTIVE"),
    Scenario("stop", _running, _act({"os-stop": None}), "SHUTOFF"),
    Scenario("reboot", _running, _act({"reboot": {"type": "HARD"}}), "ACTIVE"),
    Scenario("powered_on", _after({"os-stop": None}), _press("POWER_ON", 1), "ACTIVE"),
    Scenario("powered_off", _running, _press("POWER_OFF", 4), "SHUTOFF"),
    Scenario("pause", _running, _act({"pause": None}), "PAUSED"),
    Scenario("unpause", _after({"pause": None}), _act({"unpause": None}), "ACTIVE"),
    Scenario("suspend", _running, _act({"suspend": None}), "SUSPENDED"),
    Scenario("resume", _after({"suspend": None}), _act({"resume": None}), "ACTIVE"),
    Scenario("rescue", _running, _act({"rescue": None}), "RESCUE"),
    Scenario("unrescue", _after({"rescue": None}), _act({"unrescue": None}), "ACTIVE"),
    Scenario("trigger_crash_dump", _running, _act({"trigger_crash_dump": None}), "ACTIVE"),
    Scenario("snapshot", _running, _act({"createImage": {"name": "snapshot"}}), "ACTIVE"),
    Scenario(
        "snapshot",
        _prone("snapshot"),
        _act({"createImage": {"name": "s"}}),
        "ACTIVE",
        "that fails",
        "failed",
    ),
    Scenario("backup", _after(_BACKED_UP), _act(_BACKED_UP), "ACTIVE"),
    Scenario("discard_image", _running, _discard_image, "ACTIVE"),
    Scenario("shelve", _running, _act({"shelve": None}), "SHELVED"),
    Scenario("shelve_offload", _SHELVED, _act({"shelveOffload": None}), "SHELVED_OFFLOADED"),
    Scenario("unshelve", _OFFLOADED, _act({"unshelve": None}), "ACTIVE"),
    Scenario(
        "unshelve",
        _but(_OFFLOADED, _STILL),
        _act({"unshelve": None}),
        "ACTIVE",
        "that stands still until it is plugged",
    ),
    Scenario(
        "unshelve",
        _but(_OFFLOADED, {"fake:spawn": "fail_here"}),
        _act({"unshelve": None}),
        "SHELVED_OFFLOADED",
        "that fails",
        "failed",
    ),
    Scenario("unshelve_here", _SHELVED, _act({"unshelve": None}), "ACTIVE"),
    Scenario("rebuild", _running, _rebuild, "ACTIVE"),
    Scenario("cold_move", _running, _act({"migrate": None}), "VERIFY_RESIZE"),
    Scenario(
        "cold_move", _running, _act({"resize": {"flavorRef": "2"}}), "VERIFY_RESIZE", "to another flavor"
    ),
    Scenario(
        "cold_move", _in_place(_running), _act({"resize": {"flavorRef": "2"}}), "VERIFY_RESIZE", "in place"
    ),
    Scenario(
        "cold_move",
        _but(_running, {"fake:take_over": "fail_here"}),
        _act({"migrate": None}),
        "ACTIVE",
        "that fails",
        "failed",
    ),
    Scenario("confirm_resize", _MOVED, _act({"confirmResize": None}), "ACTIVE"),
    Scenario("confirm_resize", _resized, _act({"confirmResize": None}), "ACTIVE", "in place"),
    Scenario("revert_resize", _MOVED, _act({"revertResize": None}), "ACTIVE"),
    Scenario("revert_resize", _resized, _act({"revertResize": None}), "ACTIVE", "in place"),
    Scenario("live_migrate", _running, _act(_LIVE), "ACTIVE"),
    Scenario("live_migrate", _prone("live_migrate"), _act(_LIVE), "ACTIVE", "that fails", "failed"),
    Scenario(
        "live_migrate",
        _but(_running, {"fake:take_over": "fail_here"}),
        _act(_LIVE),
        "ACTIVE",
        "that does not arrive",
        "failed",
    ),
    Scenario("live_migrate", _on_its_way, _lose_source, "ACTIVE", "whose source is lost", "failed"),
    Scenario("evacuate", _running, _evacuate(), "SHUTOFF"),
    Scenario(
        "evacuate",
        _but(_running, _STILL),
        _evacuate("2.94"),
        "ACTIVE",
        "that stands still until it is plugged",
    ),
    Scenario(
        "evacuate", _but(_running, {"fake:spawn": "fail_here"}), _evacuate(), "ACTIVE", "that fails", "failed"
    ),
    Scenario("unwind", _in_mid_move, _act({"os-resetState": {"state": "active"}}), "ACTIVE"),
    Scenario("attach_interface", _bare, _attach, "ACTIVE"),
    Scenario("attach_interface", _demanding(_bare), _attach, "ACTIVE", "with bandwidth"),
    Scenario(
        "attach_interface",
        _prone("attach_interface", networks="none"),
        _attach,
        "ACTIVE",
        "that fails",
        "failed",
    ),
    Scenario("detach_interface", _attached, _detach, "ACTIVE"),
    Scenario("detach_interface", _demanding(_attached), _detach, "ACTIVE", "with bandwidth"),
    Scenario("add_address", _running, _add_address, "ACTIVE"),
    Scenario("remove_address", _two_addresses, _remove_address, "ACTIVE"),
)

UNREACHED: dict[str, str] = {
    "build/prepare_late": "only amid an upgrade, with agents that make ports (test_older_port_operations.py)",
    "delete/let_go": "only where conductors have no network (test_older_port_operations.py)",
    "delete/gone": "as let_go",
    "evacuate/restored": "there is nothing to start at a dead source; all moves are declared to know it",
}
"""Steps that no scenario comes to, and why."""
