"""What a driver's own tests bring: one host, and whatever else the tests of a part need."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import pytest

from moorage.drivers.contract import Driver, ServerSpec
from moorage.drivers.parts import ConsoleType

P = TypeVar("P")


class DriverStand(ABC):
    """One host with the driver that is tested, and what the tests need besides."""

    driver: Driver
    consoles: Collection[ConsoleType] = (ConsoleType.NOVNC,)
    """What its running servers have, if the driver has `RemoteConsoles`."""
    keeps_logs: bool = True
    """Whether what its servers print is kept somewhere, if the driver can read it there."""
    takes_interrupts: bool = True
    """Whether its machines can be told to crash, if the driver can tell them."""

    @abstractmethod
    def spec(self, driver: Driver | None = None) -> ServerSpec:
        """A new server, for a node of this driver (or of the other host's) that has room for it."""

    @abstractmethod
    def restart(self) -> None:
        """Close the driver, and have another one of the same host take its place."""

    def slow_spec(self) -> ServerSpec | None:
        """One whose `spawn` is at work until it is cut short, or for some seconds; None if there is none."""
        return None

    def is_at_work(self, spec: ServerSpec) -> bool:
        """Whether the `spawn` of a `slow_spec` has begun to change anything."""
        raise NotImplementedError

    def other(self) -> Driver:
        """The driver of another host: for those that can move servers."""
        raise NotImplementedError

    def port(self) -> Mapping[str, Any]:
        """One more port, as in `ServerSpec.network`: for those that can change interfaces."""
        return {"id": str(uuid.uuid4()), "mac": "fa:16:3e:00:00:02", "addresses": ["10.0.0.6"]}

    def forget(self, spec: ServerSpec) -> None:
        """Remove a server, and wait until its node has room again."""
        self.driver.destroy(spec.uuid, spec.node_uuid)

    def rescue_spec(self, spec: ServerSpec) -> ServerSpec:
        """The same server, with the image that it is rescued with: for those that can rescue."""
        return spec

    def waiting_image(self) -> str | None:
        """An image that waits for data: for those that make snapshots; None if there is none."""
        return None

    def has_data(self, image_id: str) -> bool:
        raise NotImplementedError


def part_of(driver: Driver, part: type[P]) -> P:
    if not isinstance(driver, part):
        pytest.skip(f"it is not {part.__name__}")
    return driver
