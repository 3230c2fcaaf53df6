"""What a telemetry service hears of the life of servers, through oslo.messaging's notifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moorage.bus.oslo import oslo_messaging
from moorage.cli import settings
from moorage.core import uuids
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

Make = Callable[..., Yard]
URL = "fake:///"
"""oslo.messaging's own transport in memory: all but the broker is real."""


ASKED: list[dict[str, Any]] = [
    {"os-stop": None},
    {"os-start": None},
    {"reboot": {"type": "HARD"}},
    *({name: None} for name in ("pause", "unpause", "suspend", "resume", "rescue", "unrescue")),
    {"trigger_crash_dump": None},
    {"createImage": {"name": "i"}},
    {"shelve": None},
    {"unshelve": None},
    {"rebuild": None},
    {"lock": None},
    {"unlock": None},
]
TOLD = (
    *("power_off", "power_on", "reboot"),
    *("pause", "unpause", "suspend", "resume", "rescue", "unrescue"),
    *("trigger_crash_dump", "snapshot", "shelve", "shelve_offload", "unshelve"),
)
"""Of that, by the reference's names."""
EVENTS = {"shelve": 4, "rebuild": 3, "lock": 1, "unlock": 1}
"""How many are told of an action that is not just begun and ended."""


class Consumer:
    """Hears one topic. Each priority has a queue of its own, so what was sent first may be heard last."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._heard: list[tuple[str, str, dict[str, Any]]] = []
        transport = oslo_messaging.get_notification_transport(settings.read(), url=URL)
        target = oslo_messaging.Target(topic=topic)
        self._listener = oslo_messaging.get_notification_listener(transport, [target], [self])
        self._listener.start()

    def info(self, _context: Any, _publisher: str, event: str, payload: dict[str, Any], more: Any) -> None:
        self._heard.append((more["timestamp"], event, payload["nova_object.data"]))

    error = info

    def close(self) -> None:
        self._listener.stop()
        self._listener.wait()

    @property
    def heard(self) -> list[tuple[str, dict[str, Any]]]:
        """In the order of sending."""
        return [(event, data) for _, event, data in sorted(self._heard, key=lambda message: message[0])]

    def events(self, uuid: str) -> list[str]:
        return [event for event, data in self.heard if data["uuid"] == uuid]

    def await_events(self, uuid: str, count: int) -> None:
        """They are sent right after what they tell of, so the next thing could be told first."""
        wait_until(lambda: len(self.events(uuid)) >= count, f"{count} events", 20)

    def last(self, uuid: str) -> dict[str, Any]:
        return next(data for _, data in reversed(self.heard) if data["uuid"] == uuid)


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    made = Consumer(uuids.generate())
    yield made
    made.close()


@pytest.fixture
def cloud(yard: Make, consumer: Consumer) -> Yard:
    options = {"enabled": True, "transport_url": URL, "topics": [consumer.topic]}
    return yard(hosts=1, **{f"notifications.{name}": value for name, value in options.items()})


def test_a_server_is_told_of_from_birth_to_death(cloud: Yard, consumer: Consumer) -> None:
    (uuid,) = cloud.boot()
    cloud.await_status([uuid], "ACTIVE")
    wait_until(lambda: len(consumer.events(uuid)) == 2, "its birth", 10)
    assert consumer.events(uuid) == ["instance.create.start", "instance.create.end"]
    assert (consumer.last(uuid)["state"], consumer.last(uuid)["host"]) == ("active", "fake-1")
    heard = 2
    for action in ASKED:
        body = {"rebuild": {"imageRef": cloud.image()}} if "rebuild" in action else action
        answer = cloud.api.simulate_post(f"/v2.1/servers/{uuid}/action", json=body)
        assert answer.status_code in (200, 202), answer.text
        cloud.await_rest()
        heard += EVENTS.get(next(iter(action)), 2)
        consumer.await_events(uuid, heard)
    cloud.delete(uuid)
    cloud.await_gone([uuid])
    told = [f"instance.{action}.{phase}" for action in ("create", *TOLD) for phase in ("start", "end")]
    told += ["instance.rebuild.start", "instance.rebuild_scheduled", "instance.rebuild.end"]
    told += ["instance.lock", "instance.unlock", "instance.delete.start"]
    told += ["instance.shutdown.start", "instance.shutdown.end", "instance.delete.end"]
    wait_until(lambda: len(consumer.events(uuid)) == len(told), "its death", 10)
    assert consumer.events(uuid) == told


MOVES: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"os-migrateLive": {"host": None, "block_migration": "auto"}},
        [
            *("live_migration_pre.start", "live_migration_pre.end", "live_migration_post.start"),
            *("live_migration_post_dest.start", "live_migration_post_dest.end", "live_migration_post.end"),
        ],
    ),
    (
        {"resize": {"flavorRef": "2"}},
        [
            *("resize.start", "resize_prep.start", "resize_prep.end"),
            *("resize_finish.start", "resize_finish.end", "resize.end"),
        ],
    ),
    ({"revertResize": None}, ["resize_revert.start", "resize_revert.end"]),
]


def test_moves_are_told_by_their_parts(yard: Make, consumer: Consumer) -> None:
    options = {"enabled": True, "transport_url": URL, "topics": [consumer.topic]}
    cloud = yard(hosts=2, **{f"notifications.{name}": value for name, value in options.items()})
    (uuid,) = cloud.boot()
    cloud.await_status([uuid], "ACTIVE")
    cloud.await_rest()
    told = ["create.start", "create.end"]
    headers = {"openstack-api-version": "compute 2.96"}
    for action, parts in MOVES:
        answer = cloud.api.simulate_post(f"/v2.1/servers/{uuid}/action", json=action, headers=headers)
        assert answer.status_code == 202, answer.text
        cloud.await_rest()
        told += parts
    wait_until(lambda: len(consumer.events(uuid)) >= len(told), "its moves", 10)
    assert consumer.events(uuid) == [f"instance.{name}" for name in told]


def test_a_live_migration_that_fails_is_told_of_both_ends(yard: Make, consumer: Consumer) -> None:
    options = {"enabled": True, "transport_url": URL, "topics": [consumer.topic]}
    cloud = yard(hosts=2, **{f"notifications.{name}": value for name, value in options.items()})
    (uuid,) = cloud.boot(metadata={"fake:live_migrate": "fail"})
    cloud.await_rest()
    action, _ = MOVES[0]
    assert cloud.api.simulate_post(f"/v2.1/servers/{uuid}/action", json=action).status_code == 202
    cloud.await_rest()
    told = ("live_migration_pre", "live_migration_rollback_dest", "live_migration_rollback")
    wait_until(lambda: len(consumer.events(uuid)) >= 8, "its way back", 10)
    assert consumer.events(uuid)[2:] == [
        f"instance.{part}.{phase}" for part in told for phase in ("start", "end")
    ]


def test_a_failure_is_told_with_its_reason(cloud: Yard, consumer: Consumer) -> None:
    (uuid,) = cloud.boot(metadata={"fake:spawn": "fail"})
    cloud.await_status([uuid], "ERROR")
    wait_until(lambda: len(consumer.events(uuid)) == 2, "its failure", 10)
    assert consumer.events(uuid) == ["instance.create.start", "instance.create.error"]
    fault = consumer.last(uuid)["fault"]["nova_object.data"]
    assert fault["exception_message"] == cloud.server(uuid)["fault"]["message"]
    assert consumer.last(uuid)["state"] == "error"


def test_a_stop_that_fails_is_told(cloud: Yard, consumer: Consumer) -> None:
    (uuid,) = cloud.boot(metadata={"fake:stop": "fail"})
    cloud.await_status([uuid], "ACTIVE")
    assert cloud.api.simulate_post(f"/v2.1/servers/{uuid}/action", json={"os-stop": None}).status_code == 202
    cloud.await_rest()
    wait_until(lambda: len(consumer.events(uuid)) == 4, "its failure", 10)
    assert consumer.events(uuid)[2:] == ["instance.power_off.start", "instance.power_off.error"]
