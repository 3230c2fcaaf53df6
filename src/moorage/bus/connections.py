"""oslo.messaging's connections, but for what they declare.

By themselves senders and receivers declare exchange and queue, whosever they are; for that one needs
permissions with which one could delete them, too. Conductors and askers have these. An agent declares its own
two queues only: what it says before a conductor was ever there does not get through, and is said again.
"""

from __future__ import annotations

from typing import Any

from kombu.entity import Exchange
from oslo_config import cfg

from moorage.bus.oslo import oslo_messaging
from moorage.bus.queues import QueueNames

from oslo_messaging._drivers import impl_rabbit  # isort: skip  # after its threads were chosen


class _FleetingQueues(impl_rabbit.Connection):  # type: ignore[misc]
    """Queues of questions and answers go with those who listen to them."""

    names: QueueNames

    def declare_consumer(self, consumer: Any) -> Any:
        if self.names.is_fleeting(consumer.queue_name):
            consumer.queue_auto_delete = True
            consumer.queue_arguments = {}  # a queue of several brokers could not be fleeting
        return super().declare_consumer(consumer)


class _OnlyOwnQueues(_FleetingQueues):
    def declare_consumer(self, consumer: Any) -> Any:
        if consumer.exchange_name == self.names.exchange:
            consumer.exchange = Exchange(self.names.exchange, consumer.type, no_declare=True)  # type: ignore[no-untyped-call]
        return super().declare_consumer(consumer)

    def notify_send(
        self, exchange_name: str, topic: str, msg: Any, retry: int | None = None, **_kwargs: Any
    ) -> None:
        """Who sends to a queue that is not there yet is told."""
        exchange = Exchange(exchange_name, "topic", passive=True)  # type: ignore[no-untyped-call]
        self._ensure_publishing(
            self._publish_and_raises_on_missing_exchange,
            exchange,
            msg,
            routing_key=topic,
            retry=retry,
            transport_options=oslo_messaging.TransportOptions(at_least_once=True),
        )


def transport(conf: cfg.ConfigOpts, *, agent: bool = False) -> Any:
    """A way to send and to listen."""
    made = oslo_messaging.get_notification_transport(conf, url=conf.transport_url)
    pool = getattr(made._driver, "_connection_pool", None)
    if pool is not None:  # another driver than that of RabbitMQ has none
        base = _OnlyOwnQueues if agent else _FleetingQueues
        pool.connection_cls = type(base.__name__, (base,), {"names": QueueNames(conf.bus.exchange)})
    return made
