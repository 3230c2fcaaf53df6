"""How an operation of each kind comes about, as a user or an operator asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import sqlalchemy as sa

from moorage.compute.audits.findings import MEND
from moorage.compute.servers import servers, soft_deletes
from moorage.compute.servers.actions import Origin
from moorage.ledger import leasing, queue
from moorage.placement.client.contract import ConsumerClaim
from tests.functional.conductor.older.sample import Sample
from tests.functional.conductor.older.site import Site

Ready = Callable[[Site, Sample], str]
Ask = Callable[[Site, Sample, str], str | None]
PROCESSOR = "processor"
"""A flavor of one, and of nothing else."""
LIVE = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
_IN_PASSING = {
    ("build", "prepare_late"): "bind",  # which does nothing before it if it finds that it has to
    ("evacuate", "restored"): "restore",  # where there is nothing to start; all moves are declared to know it
}
"""Steps that operations are not seen at in the ledger, and those at which all else is the same."""


_BUTTONS: dict[str, Callable[[Any, str], object]] = {
    "powered_on": lambda driver, uuid: driver.start(uuid, ""),
    "powered_off": lambda driver, uuid: driver.stop(uuid, ""),
}


class Brought(NamedTuple):
    """A server whose operation was interrupted at the sample's step."""

    uuid: str
    host: str | None
    """Where it was before the operation."""
    operation: sa.Row[Any]


def bring(site: Site, sample: Sample) -> Brought:
    step = _IN_PASSING.get((sample.kind, sample.step), sample.step)
    ready, ask = _WAYS[sample.kind]
    uuid = ready(site, sample)
    host: str | None = site.row(uuid).host if uuid else None
    if sample.faults():
        site.set_metadata(uuid, sample.faults())
    turn = _turn(sample) or step
    site.interruption.at(sample.kind, turn, sample.failures)
    uuid = ask(site, sample, uuid) or uuid
    operation = site.interruption.await_operation(sample.kind, turn)
    _change_the_world(site, sample, uuid, host)
    if turn != step:
        site.interruption.over()
        site.interruption.at(sample.kind, step, sample.failures)
        site.go_on(operation.id)
        operation = site.interruption.await_operation(sample.kind, step)
    return Brought(uuid, host, operation)


def _turn(sample: Sample) -> str | None:
    """The step at which the world changes, if it has to before the sample's step."""
    if sample.kind in _BUTTONS:
        return "begin"
    return "schedule" if sample.failures and sample.goes_on_with_host else None


def _change_the_world(site: Site, sample: Sample, uuid: str, host: str | None) -> None:
    """All is well again; or somebody presses a button on the machine."""
    site.unbindable.clear()
    if sample.faults():
        site.set_metadata(uuid, {})
    if sample.kind in _BUTTONS:
        _BUTTONS[sample.kind](site.driver_of(host or ""), uuid)


def _nothing(site: Site, sample: Sample) -> str:
    return ""


def _running(site: Site, sample: Sample) -> str:
    return site.running(flavorRef=sample.old_flavor, metadata=sample.faults_of_running())


def _after(*bodies: dict[str, Any]) -> Ready:
    """A server of which all this was asked, one after the other."""

    def ready(site: Site, sample: Sample) -> str:
        uuid = _running(site, sample)
        for body in bodies:
            site.act(uuid, body)
            site.await_rest()
        return uuid

    return ready


def _shelved(site: Site, sample: Sample) -> str:
    """And nobody is about to offload it."""
    uuid = _running(site, sample)
    site.interruption.at("shelve_offload", "begin")
    site.act(uuid, {"shelve": None})
    site.interruption.await_operation("shelve_offload", "begin")
    site.interruption.over()
    server_id = site.row(uuid).id

    def stay(connection: sa.Connection) -> None:
        queue.cancel(connection, server_id)
        servers.set_state(connection, server_id, task_state=None)

    site.database.transact(stay)
    return uuid


def _bare(site: Site, sample: Sample) -> str:
    flavor = PROCESSOR if sample.needs_bandwidth else "1"
    return site.running(networks="none", flavorRef=flavor, metadata=sample.faults_of_running())


def _attached(site: Site, sample: Sample) -> str:
    uuid = _bare(site, sample)
    site.attach(uuid, net_id=site.network_id)
    site.await_rest()
    return uuid


def _moved(site: Site, sample: Sample) -> str:
    uuid = _running(site, sample)
    site.moved(uuid, sample.new_flavor)
    return uuid


def _deletable(site: Site, sample: Sample) -> str:
    uuid = _running(site, sample)
    if sample.in_mid_move:
        site.moved(uuid, None)
    return uuid


def _in_mid_move(site: Site, sample: Sample) -> str:
    """It is in mid-move, and nobody goes on with that."""
    uuid = _running(site, sample)
    site.interruption.at("cold_move", "taken_over")
    site.act(uuid, {"migrate": None})
    site.interruption.await_operation("cold_move", "taken_over")
    return uuid


def _gone(site: Site, sample: Sample) -> str:
    uuid = _running(site, sample)
    site.delete(uuid)
    site.await_rest()
    return uuid


def _build(site: Site, sample: Sample, _uuid: str) -> str:
    if sample.failures:
        site.unbindable.update(site.nodes())
    return site.boot()


def _delete(site: Site, _sample: Sample, uuid: str) -> None:
    site.delete(uuid)


def _act(body: dict[str, Any]) -> Callable[[Site, Sample, str], None]:
    return lambda site, _sample, uuid: site.act(uuid, body)


def _cold_move(site: Site, sample: Sample, uuid: str) -> None:
    flavor = sample.new_flavor
    site.act(uuid, {"migrate": None} if flavor is None else {"resize": {"flavorRef": flavor}})


def _evacuate(site: Site, _sample: Sample, uuid: str) -> None:
    site.set_down(site.row(uuid).host, True)
    site.act(uuid, {"evacuate": {}})


def _rebuild(site: Site, _sample: Sample, uuid: str) -> None:
    site.act(uuid, {"rebuild": {"imageRef": site.row(uuid).image_ref}})


def _attach(site: Site, sample: Sample, uuid: str) -> None:
    wanted = {"tag": sample.data["tag"], "net_id": site.network_id} if sample.data["tag"] else {}
    site.meanwhile(lambda: site.attach(uuid, **wanted))


def _detach(site: Site, _sample: Sample, uuid: str) -> None:
    site.detach(uuid)


def _add_address(site: Site, _sample: Sample, uuid: str) -> None:
    body = {"addFixedIp": {"networkId": site.network_id}}
    site.meanwhile(lambda: site.act(uuid, body, "2.43"))


def _remove_address(site: Site, _sample: Sample, uuid: str) -> None:
    ((address,),) = site.row(uuid).addresses.values()
    site.meanwhile(lambda: site.act(uuid, {"removeFixedIp": {"address": address["addr"]}}, "2.43"))


def _tell_power(tag: str) -> Callable[[Site, Sample, str], None]:
    def tell(site: Site, _sample: Sample, uuid: str) -> None:
        event = {"name": "power-update", "server_uuid": uuid, "tag": tag}
        reply = site.api.simulate_post("/v2.1/os-server-external-events", json={"events": [event]})
        assert reply.status_code == 200, reply.text

    return tell


def _discard_image(site: Site, sample: Sample, uuid: str) -> None:
    """A snapshot was cut short."""
    server_id = site.row(uuid).id
    site.database.transact(
        lambda connection: queue.enqueue(connection, server_id, "discard_image", sample.data)
    )


def _soft_delete(site: Site, _sample: Sample, uuid: str) -> None:
    """As in a cloud that keeps deleted servers for an hour."""

    def delete(connection: sa.Connection) -> None:
        server = servers.lock(connection, uuid)
        soft_deletes.delete(connection, server, Origin("req", "admin", server.project_id), 3600)

    site.database.transact(delete)


def _softly_deleted(site: Site, sample: Sample) -> str:
    uuid = _running(site, sample)
    _soft_delete(site, sample, uuid)
    site.await_rest()
    return uuid


def _give_back(site: Site, _sample: Sample, uuid: str) -> None:
    """A conductor whose lease had ended has claimed something for it."""
    node = min(site.nodes().values())
    assert site.client.claim([ConsumerClaim(uuid, {node: {"VCPU": 1}}, "p", "u")]) == [None]
    server_id = site.row(uuid).id
    site.database.transact(lambda connection: queue.enqueue(connection, server_id, leasing.GIVE_BACK, {}))


def _mend(site: Site, _sample: Sample, uuid: str) -> None:
    """An audit has found something about it, which is gone by now."""
    server_id = site.row(uuid).id
    data = {"check": "allocations", "suspect": {"subject": uuid, "facts": {}}}
    site.database.transact(lambda connection: queue.enqueue(connection, server_id, MEND, data))


_WAYS: dict[str, tuple[Ready, Ask]] = {
    "build": (_nothing, _build),
    "delete": (_deletable, _delete),
    "give_back": (_gone, _give_back),
    "mend": (_running, _mend),
    "start": (_after({"os-stop": None}), _act({"os-start": None})),
    "stop": (_running, _act({"os-stop": None})),
    "reboot": (_running, _act({"reboot": {"type": "HARD"}})),
    "powered_on": (_after({"os-stop": None}), _tell_power("POWER_ON")),
    "powered_off": (_running, _tell_power("POWER_OFF")),
    "pause": (_running, _act({"pause": None})),
    "unpause": (_after({"pause": None}), _act({"unpause": None})),
    "suspend": (_running, _act({"suspend": None})),
    "resume": (_after({"suspend": None}), _act({"resume": None})),
    "rescue": (_running, _act({"rescue": None})),
    "unrescue": (_after({"rescue": None}), _act({"unrescue": None})),
    "trigger_crash_dump": (_running, _act({"trigger_crash_dump": None})),
    "soft_delete": (_running, _soft_delete),
    "restore": (_softly_deleted, _act({"restore": None})),
    "snapshot": (_running, _act({"createImage": {"name": "i"}})),
    "backup": (
        _running,
        _act({"createBackup": {"name": "i", "backup_type": "daily", "rotation": 2}}),
    ),
    "discard_image": (_running, _discard_image),
    "shelve": (_running, _act({"shelve": None})),
    "shelve_offload": (_running, _act({"shelve": None})),
    "unshelve": (_after({"shelve": None}), _act({"unshelve": None})),
    "unshelve_here": (_shelved, _act({"unshelve": None})),
    "rebuild": (_running, _rebuild),
    "cold_move": (_running, _cold_move),
    "confirm_resize": (_moved, _act({"confirmResize": None})),
    "revert_resize": (_moved, _act({"revertResize": None})),
    "live_migrate": (_running, _act(LIVE)),
    "evacuate": (_running, _evacuate),
    "unwind": (_in_mid_move, _act({"os-resetState": {"state": "active"}})),
    "attach_interface": (_bare, _attach),
    "detach_interface": (_attached, _detach),
    "add_address": (_running, _add_address),
    "remove_address": (_running, _remove_address),
}
"""What has to be there first, and what is asked then."""
