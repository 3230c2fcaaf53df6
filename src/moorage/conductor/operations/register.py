"""The register: every kind of operation that there is. A new one takes its place here."""

from __future__ import annotations

from moorage.conductor.operations.build import Build
from moorage.conductor.operations.delete import Delete
from moorage.conductor.operations.give_back import GiveBack
from moorage.conductor.operations.guests.crash_dump import TriggerCrashDump
from moorage.conductor.operations.guests.power import Reboot, Start, Stop
from moorage.conductor.operations.guests.power_update import PoweredOff, PoweredOn
from moorage.conductor.operations.guests.rescue import Rescue, Unrescue
from moorage.conductor.operations.guests.suspending import Pause, Resume, Suspend, Unpause
from moorage.conductor.operations.imaging.discard_image import DiscardImage
from moorage.conductor.operations.imaging.shelve import Shelve, ShelveOffload
from moorage.conductor.operations.imaging.snapshot import Backup, Snapshot
from moorage.conductor.operations.imaging.unshelve import Unshelve, UnshelveHere
from moorage.conductor.operations.interfaces.attach_interface import AttachInterface
from moorage.conductor.operations.interfaces.detach_interface import DetachInterface
from moorage.conductor.operations.interfaces.readdress import AddAddress, RemoveAddress
from moorage.conductor.operations.kind import OperationKind
from moorage.conductor.operations.mend import Mend
from moorage.conductor.operations.moves.cold_move import ColdMove
from moorage.conductor.operations.moves.confirm_resize import ConfirmResize
from moorage.conductor.operations.moves.evacuate import Evacuate
from moorage.conductor.operations.moves.live_migrate import LiveMigrate
from moorage.conductor.operations.moves.revert_resize import RevertResize
from moorage.conductor.operations.moves.unwind import Unwind
from moorage.conductor.operations.rebuild import Rebuild
from moorage.conductor.operations.soft_delete import Restore, SoftDelete
from moorage.ledger.declared import Declarations

KINDS: tuple[type[OperationKind], ...] = (
    Build,
    Delete,
    SoftDelete,
    Restore,
    GiveBack,
    Mend,
    Start,
    Stop,
    Reboot,
    PoweredOn,
    PoweredOff,
    Pause,
    Unpause,
    Suspend,
    Resume,
    Rescue,
    Unrescue,
    TriggerCrashDump,
    Snapshot,
    Backup,
    DiscardImage,
    Shelve,
    ShelveOffload,
    Unshelve,
    UnshelveHere,
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

DECLARED: Declarations = {kind.name: kind.declaration() for kind in KINDS}
