"""Telling others what happens to servers: versioned `instance.*` notifications, off unless switched on.

They are a courtesy: nothing waits for them, and what can't be sent is logged and forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

from oslo_config import cfg
from prometheus_client import Counter

from moorage.bus.channel import Channel
from moorage.bus.contract import BusError
from moorage.bus.notification_payload import payload

LOG = logging.getLogger(__name__)

DROPPED = Counter("moorage_notifications_dropped_total", "Notifications that could not be sent.")
_RETRIES = 2


class Phase(StrEnum):
    START = "start"
    END = "end"
    ERROR = "error"


class Notifications(Protocol):
    def server(
        self,
        action: str,
        phase: Phase,
        server: Mapping[str, Any],
        *,
        error: str | None = None,
        request_id: str | None = None,
    ) -> None:
        """Something begins to happen, has happened or has failed; `server` is its row. Returns at once."""

    def close(self) -> None: ...


class NoNotifications:
    """Notifications that are switched off."""

    def server(
        self,
        action: str,
        phase: Phase,
        server: Mapping[str, Any],
        *,
        error: str | None = None,
        request_id: str | None = None,
    ) -> None:
        pass

    def close(self) -> None:
        pass


class OsloNotifications:
    """Sent by a thread of their own, so that a slow RabbitMQ slows nothing else."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        from moorage.bus.oslo import oslo_messaging, set_defaults  # a second to import, for those who use it

        set_defaults(conf)
        url = conf.notifications.transport_url or conf.transport_url
        self._transport = oslo_messaging.get_notification_transport(conf, url=url)
        self._notifier = oslo_messaging.Notifier(
            self._transport, driver="messagingv2", topics=conf.notifications.topics, retry=_RETRIES
        )
        self._channel: Channel[dict[str, Any]] = Channel("notifications", self._send, patience=0.0)

    def server(
        self,
        action: str,
        phase: Phase,
        server: Mapping[str, Any],
        *,
        error: str | None = None,
        request_id: str | None = None,
    ) -> None:
        message = {
            "event_type": f"instance.{action}.{phase.value}",
            "publisher_id": f"nova-compute:{server['host'] or ''}",
            "payload": payload(action, server, error, request_id),
        }
        try:
            self._channel.put([message])
        except BusError:
            DROPPED.inc()

    def close(self) -> None:
        self._channel.close()
        self._transport.cleanup()

    def _send(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            notifier = self._notifier.prepare(publisher_id=message["publisher_id"])
            failed = message["event_type"].endswith(f".{Phase.ERROR.value}")
            notify = notifier.error if failed else notifier.info
            notify({}, message["event_type"], message["payload"])


def from_conf(conf: cfg.ConfigOpts) -> Notifications:
    return OsloNotifications(conf) if conf.notifications.enabled else NoNotifications()
