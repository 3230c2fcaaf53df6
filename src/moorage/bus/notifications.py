"""Telling others what happens to servers: versioned `instance.*` notifications, off unless switched on.

They are a courtesy: nothing waits for them, and what can't be sent is logged and forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from oslo_config import cfg
from prometheus_client import Counter

from moorage.bus.channel import Channel
from moorage.bus.contract import BusError
from moorage.bus.notification_payload import payload

LOG = logging.getLogger(__name__)

DROPPED = Counter("moorage_notifications_dropped_total", "Notifications that could not be sent.")
_RETRIES = 2
_OF_CONDUCTORS = ("rebuild_scheduled",)
"""Of what takes no time."""


class Phase(StrEnum):
    START = "start"
    END = "end"
    ERROR = "error"


class Notifications(Protocol):
    def server(
        self,
        action: str,
        phase: Phase | None,
        server: Mapping[str, Any],
        *,
        error: str | None = None,
        request_id: str | None = None,
    ) -> None:
        """Something begins to happen, has happened or has failed; `server` is its row. Returns at once.

        What takes no time has no phase.
        """

    def close(self) -> None: ...


class NoNotifications:
    """Notifications that are switched off."""

    def server(
        self,
        action: str,
        phase: Phase | None,
        server: Mapping[str, Any],
        *,
        error: str | None = None,
        request_id: str | None = None,
    ) -> None:
        pass

    def close(self) -> None:
        pass


class _Notification(NamedTuple):
    publisher_id: str
    event_type: str
    payload: dict[str, Any]
    is_error: bool


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
        self._channel: Channel[_Notification] = Channel("notifications", self._send, patience=0.0)

    def server(
        self,
        action: str,
        phase: Phase | None,
        server: Mapping[str, Any],
        *,
        error: str | None = None,
        request_id: str | None = None,
    ) -> None:
        notification = _Notification(
            publisher_id=f"{_publisher(action, phase)}:{server['host'] or ''}",
            event_type=f"instance.{action}" + ("" if phase is None else f".{phase.value}"),
            payload=payload(action, server, error, request_id),
            is_error=phase is Phase.ERROR,
        )
        try:
            self._channel.put([notification])
        except BusError:
            DROPPED.inc()

    def close(self) -> None:
        self._channel.close()
        self._transport.cleanup()

    def _send(self, notifications: list[_Notification]) -> None:
        for one in notifications:
            notifier = self._notifier.prepare(publisher_id=one.publisher_id)
            notify = notifier.error if one.is_error else notifier.info
            notify({}, one.event_type, one.payload)


def _publisher(action: str, phase: Phase | None) -> str:
    """As the reference's services are called."""
    if phase is not None:
        return "nova-compute"
    return "nova-conductor" if action in _OF_CONDUCTORS else "nova-api"


def from_conf(conf: cfg.ConfigOpts) -> Notifications:
    return OsloNotifications(conf) if conf.notifications.enabled else NoNotifications()
