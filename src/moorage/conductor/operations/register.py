"""The register: every kind of operation that there is. A new one takes its place here."""

from __future__ import annotations

from moorage.conductor.operations.attach_interface import AttachInterface
from moorage.conductor.operations.build import Build
from moorage.conductor.operations.cold_move import ColdMove
from moorage.conductor.operations.confirm_resize import ConfirmResize
from moorage.conductor.operations.delete import Delete
from moorage.conductor.operations.detach_interface import DetachInterface
from moorage.conductor.operations.evacuate import Evacuate
from moorage.conductor.operations.give_back import GiveBack
from moorage.conductor.operations.kind import OperationKind
from moorage.conductor.operations.live_migrate import LiveMigrate
from moorage.conductor.operations.power import Reboot, Start, Stop
from moorage.conductor.operations.power_update import PoweredOff, PoweredOn
from moorage.conductor.operations.readdress import AddAddress, RemoveAddress
from moorage.conductor.operations.rebuild import Rebuild
from moorage.conductor.operations.revert_resize import RevertResize
from moorage.conductor.operations.unwind import Unwind

KINDS: tuple[type[OperationKind], ...] = (
    Build,
    Delete,
    GiveBack,
    Start,
    Stop,
    Reboot,
    PoweredOn,
    PoweredOff,
    Rebuild,
    ColdMove,
    ConfirmResize,
    RevertResize,
    LiveMigrate,
    Evacuate,
    Unwind,
    AttachInterface,
    DetachInterface,
    AddAddress,
    RemoveAddress,
)
