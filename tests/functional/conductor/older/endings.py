"""How an operation of each kind ends if all goes well, and if it was certain that it comes to nothing."""

from __future__ import annotations

from typing import NamedTuple

from tests.functional.conductor.older.sample import Sample


class Ending(NamedTuple):
    outcome: str
    status: str | None = None
    """Of the server; None: there is none any more."""
    elsewhere: bool | None = False
    """It is on another host than before; None if any host will do."""
    has_port: bool = True
    migration: str | None = None
    """What its last migration says."""


_WELL = {
    "build": Ending("done", "ACTIVE", elsewhere=None),
    "delete": Ending("done"),
    "give_back": Ending("done"),
    "mend": Ending("done", "ACTIVE"),
    "start": Ending("done", "ACTIVE"),
    "stop": Ending("done", "SHUTOFF"),
    "reboot": Ending("done", "ACTIVE"),
    "powered_on": Ending("done", "ACTIVE"),
    "powered_off": Ending("done", "SHUTOFF"),
    "pause": Ending("done", "PAUSED"),
    "unpause": Ending("done", "ACTIVE"),
    "suspend": Ending("done", "SUSPENDED"),
    "resume": Ending("done", "ACTIVE"),
    "rescue": Ending("done", "RESCUE"),
    "unrescue": Ending("done", "ACTIVE"),
    "trigger_crash_dump": Ending("done", "ACTIVE"),
    "soft_delete": Ending("done", "SOFT_DELETED"),
    "restore": Ending("done", "ACTIVE"),
    "snapshot": Ending("done", "ACTIVE"),
    "backup": Ending("done", "ACTIVE"),
    "discard_image": Ending("done", "ACTIVE"),
    "shelve": Ending("done", "SHELVED_OFFLOADED", elsewhere=None),
    "shelve_offload": Ending("done", "SHELVED_OFFLOADED", elsewhere=None),
    "unshelve": Ending("done", "ACTIVE", elsewhere=None),
    "unshelve_here": Ending("done", "ACTIVE"),
    "rebuild": Ending("done", "ACTIVE"),
    "cold_move": Ending("done", "VERIFY_RESIZE", elsewhere=True, migration="finished"),
    "confirm_resize": Ending("done", "ACTIVE", migration="confirmed"),
    "revert_resize": Ending("done", "ACTIVE", elsewhere=True, migration="reverted"),
    "live_migrate": Ending("done", "ACTIVE", elsewhere=True, migration="completed"),
    "evacuate": Ending("done", "SHUTOFF", elsewhere=True, migration="done"),
    "unwind": Ending("done", "ACTIVE", migration="error"),
    "attach_interface": Ending("done", "ACTIVE"),
    "detach_interface": Ending("done", "ACTIVE", has_port=False),
    "add_address": Ending("failed", "ACTIVE"),  # a pool gives a port one address, for good
    "remove_address": Ending("failed", "ACTIVE"),
}
_BACK = {
    "build": Ending("failed", "ERROR", elsewhere=None, has_port=False),
    "unshelve": Ending("failed", "SHELVED_OFFLOADED", elsewhere=None),
    "cold_move": Ending("failed", "ACTIVE", migration="error"),
    "live_migrate": Ending("failed", "ACTIVE", migration="error"),
    "evacuate": Ending("failed", "ACTIVE", migration="error"),
    "attach_interface": Ending("failed", "ACTIVE", has_port=False),
}


def ending(sample: Sample) -> Ending:
    found = _BACK[sample.kind] if sample.goes_back else _WELL[sample.kind]
    return found._replace(migration="cancelled") if sample.data.get("aborted") else found


_CANCELLED = {
    **_BACK,
    "cold_move": Ending("failed", "ACTIVE", migration="cancelled"),
    "live_migrate": Ending("failed", "ACTIVE", migration="cancelled"),
    "evacuate": Ending("failed", "ACTIVE", migration="cancelled"),
    "start": Ending("failed", "SHUTOFF"),
    "snapshot": Ending("failed", "ACTIVE"),
    "shelve": Ending("failed", "ACTIVE"),
}


def cancelled(sample: Sample) -> Ending | None:
    """How it ends if it is cancelled at this step, whatever it would have come to; None if nothing is new."""
    if sample.goes_back:
        return None
    if sample.kind == "shelve" and sample.data.get("stopped"):
        return Ending("failed", "SHUTOFF")
    return _CANCELLED.get(sample.kind)
