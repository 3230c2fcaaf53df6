"""`/readyz` of a cloud that is one process: its hosts have no page of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage.drivers.contract import DriverError
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until


def test_a_host_whose_driver_can_t_be_asked_is_named(
    yard: Callable[..., Yard], monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = yard(hosts=2)
    first = cloud.api.simulate_get("/readyz")
    assert (first.status_code, first.text.splitlines()[-1]) == (200, "hosts: ok")

    def servers() -> dict[str, int]:
        raise DriverError("libvirtd is away")

    with monkeypatch.context() as broken:
        broken.setattr(cloud.cloud.drivers["fake-2"], "servers", servers)
        wait_until(lambda: cloud.api.simulate_get("/readyz").status_code == 503, "it to be seen", 30)
        assert cloud.api.simulate_get("/readyz").text.splitlines()[-1] == (
            "hosts: fake-2: driver: libvirtd is away"
        )
        assert cloud.api.simulate_get("/healthz").status_code == 200, "no reason to restart the process"
    wait_until(lambda: cloud.api.simulate_get("/readyz").status_code == 200, "it to be well again", 30)
