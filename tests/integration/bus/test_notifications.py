"""Notifications as another service receives them."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from moorage.bus.notifications import NoNotifications, OsloNotifications, Phase, from_conf
from moorage.bus.oslo import oslo_messaging
from moorage.core.clock import utcnow
from tests.support.processes import wait_until

SERVER: dict[str, Any] = {
    **dict.fromkeys(["description", "node", "key_name", "task_state", "locked_reason", "locked_by"]),
    **dict.fromkeys(["launched_at", "terminated_at", "deleted_at", "updated_at", "availability_zone"]),
    "uuid": "3b2b9e1c-6a5e-4f8e-9d49-0c6a0b1f2a33",
    "user_id": "u",
    "project_id": "p",
    "reservation_id": "r-1",
    "name": "web",
    "hostname": "web",
    "host": "host-1",
    "image_ref": "i",
    "vm_state": "active",
    "power_state": 1,
    "progress": 100,
    "metadata": {},
    "tags": ["a"],
    "created_at": utcnow(),
    "flavor": {"id": "1", "name": "tiny", "vcpus": 1, "ram": 512, "disk": 1},
    "addresses": {
        "private": [{"addr": "10.0.0.5", "version": 4, "OS-EXT-IPS-MAC:mac_addr": "02:00:00:00:00:01"}]
    },
}


class Consumer:
    """A telemetry service, say."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str, str, dict[str, Any]]] = []

    def info(self, _ctxt: Any, publisher: str, event: str, payload: dict[str, Any], _meta: Any) -> None:
        self.got.append(("info", publisher, event, payload))

    def error(self, _ctxt: Any, publisher: str, event: str, payload: dict[str, Any], _meta: Any) -> None:
        self.got.append(("error", publisher, event, payload))


def test_they_are_off_by_default(conf: cfg.ConfigOpts) -> None:
    assert isinstance(from_conf(conf), NoNotifications)


def test_consumers_of_the_reference_understand_them(conf: cfg.ConfigOpts) -> None:
    conf.set_override("enabled", True, group="notifications")
    notifications = from_conf(conf)
    assert isinstance(notifications, OsloNotifications)
    notifications.server("create", Phase.START, SERVER)
    notifications.server("power_off", Phase.ERROR, SERVER, error="the host is on fire", request_id="req-1")

    consumer = Consumer()
    transport = oslo_messaging.get_notification_transport(conf, url=conf.transport_url)
    targets = [oslo_messaging.Target(topic="versioned_notifications")]
    listener = oslo_messaging.get_notification_listener(transport, targets, [consumer])
    listener.start()
    wait_until(lambda: len(consumer.got) == 2, "the notifications", 20)
    listener.stop()
    listener.wait()
    notifications.close()

    by_event = {event: (level, publisher, payload) for level, publisher, event, payload in consumer.got}
    level, publisher, payload = by_event["instance.create.start"]
    assert (level, publisher) == ("info", "nova-compute:host-1")
    assert payload["nova_object.name"] == "InstanceCreatePayload"
    data = payload["nova_object.data"]
    assert (data["uuid"], data["tenant_id"], data["state"]) == (SERVER["uuid"], "p", "active")
    assert data["ip_addresses"][0]["nova_object.data"]["address"] == "10.0.0.5"
    assert data["fault"] is None
    level, _, payload = by_event["instance.power_off.error"]
    assert level == "error"
    fault = payload["nova_object.data"]["fault"]["nova_object.data"]
    assert fault["exception_message"] == "the host is on fire"
