"""Which machines an agent asks about, when, and which it sweeps."""

from __future__ import annotations

from typing import cast

from moorage.agent.sweeping import Sweeping
from moorage.bus.contract import HeldMachine
from moorage.drivers.contract import DriverError
from moorage.drivers.shared_nodes import Held, SharedNodes

ONE, OTHER = Held("server-1", "node-1"), Held("server-2", "node-2")


class Machines:
    def __init__(self) -> None:
        self.found = {ONE, OTHER}
        self.swept: list[Held] = []
        self.fails = False

    def held(self) -> set[Held]:
        return set(self.found)

    def sweep(self, held: Held) -> bool:
        if self.fails:
            raise DriverError("not now")
        self.swept.append(held)
        return True


class Yard:
    def __init__(self) -> None:
        self.now = 0.0
        self.busy: set[str] = set()
        self.machines = Machines()
        driver = cast(SharedNodes, self.machines)
        self.sweeping = Sweeping(driver, lambda: self.busy, 120.0, 600.0, lambda: self.now)

    def asked(self, after: float) -> set[str]:
        self.now += after
        self.sweeping.look()
        return {doubt.server_uuid for doubt in self.sweeping.held_machines()}

    def told(self, *held: Held) -> None:
        for one in self.sweeping.take([HeldMachine(*each) for each in held]):
            self.sweeping.sweep(one)


def test_what_is_held_for_a_while_is_asked_about_and_then_seldom() -> None:
    yard = Yard()
    assert yard.asked(0) == set()
    assert yard.asked(119) == set()
    assert yard.asked(2) == {"server-1", "server-2"}
    assert yard.asked(500) == set()
    assert yard.asked(101) == {"server-1", "server-2"}


def test_what_was_gone_or_worked_on_in_between_begins_anew() -> None:
    yard = Yard()
    yard.asked(0)
    yard.machines.found = {OTHER}
    yard.busy = {"server-2"}
    assert yard.asked(119) == set()
    yard.machines.found, yard.busy = {ONE, OTHER}, set()
    assert yard.asked(2) == set()
    assert yard.asked(119) == set()
    assert yard.asked(2) == {"server-1", "server-2"}


def test_only_what_is_still_held_is_swept_and_only_once() -> None:
    yard = Yard()
    yard.asked(0)
    yard.busy = {"server-2"}
    yard.told(ONE, OTHER, Held("server-1", "elsewhere"), Held("server-3", "node-3"))
    assert yard.machines.swept == [ONE]


def test_what_could_not_be_swept_is_asked_about_again() -> None:
    yard = Yard()
    yard.asked(0)
    assert yard.asked(121) == {"server-1", "server-2"}
    yard.machines.fails = True
    yard.told(ONE)
    assert yard.asked(121) == {"server-1"}
