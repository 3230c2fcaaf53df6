"""Machines of another system, as its operators ask about them: all that there are, whoever serves them."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class MachineState(StrEnum):
    FREE = "free"
    IN_USE = "in use"
    RESERVED = "reserved"
    """For a server that is not deployed yet."""
    STRAY = "deployed for nobody"
    DEPLOYING = "deploying"
    DEPLOY_FAILED = "deploy failed"
    CLEANING = "cleaning"
    CLEAN_FAILED = "clean failed"
    MAINTENANCE = "maintenance"
    RETIRED = "retired"
    QUARANTINE = "quarantine"
    MANAGED = "not provided"
    """Its operators have not made it available yet, or not any more."""
    NO_CLASS = "no resource class"
    NO_POWER = "no power state"
    OTHERS = "of others"
    """In use, but not by a server that we know."""
    UNKNOWN = "unknown"


class ListedMachine(msgspec.Struct, frozen=True):
    uuid: str
    name: str
    state: MachineState
    reason: str
    """Why it is so, if its system says that."""
    group: str
    shard: str
    resource_class: str
    traits: list[str]
    server_uuid: str
    """What it is used for, or reserved; empty if for nothing."""
