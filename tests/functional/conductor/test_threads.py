"""Hosts of one process share their threads: a hundred need no more than one, and none stops the others."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

HOSTS = 60
MOST = 60
"""Threads of a process, its conductor included: as many as it may have with one host."""
UNLIMITED = {"quota.instances": -1, "quota.cores": -1, "quota.ram": -1}


def test_the_number_of_threads_does_not_grow_with_the_number_of_hosts(yard: Callable[..., Yard]) -> None:
    before = threading.active_count()
    cloud = yard(hosts=HOSTS, **UNLIMITED)
    cloud.await_status(cloud.boot(30), "ACTIVE")
    wait_until(lambda: threading.active_count() - before <= MOST, f"at most {MOST} threads", 60)


def test_a_host_whose_driver_hangs_does_not_stop_the_others(yard: Callable[..., Yard]) -> None:
    """All that is asked of its driver hangs: its nodes, its servers, and tasks at its servers."""
    cloud = yard(hosts=3)
    hung, asked = threading.Event(), threading.Semaphore(0)

    def hang(*_: object) -> None:
        asked.release()
        hung.wait(120)

    driver = cloud.cloud.agents["fake-1"]._driver
    for name in ("nodes", "servers", "spawn"):
        setattr(driver, name, hang)
    for _ in range(2):
        assert asked.acquire(timeout=30)
    try:
        for host in ("fake-2", "fake-3"):
            cloud.await_status(cloud.boot(availability_zone=f"nova:{host}"), "ACTIVE")
    finally:
        hung.set()
