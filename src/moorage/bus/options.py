"""The `[bus]` and `[notifications]` options.

Where RabbitMQ is (`[DEFAULT] transport_url`) and how to speak to it (`[oslo_messaging_rabbit]`) are options
of oslo.messaging.
"""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options

OPTIONS: Options = {
    "bus": [
        cfg.StrOpt(
            "exchange", default="moorage", help="Name of the exchange, and start of the names of all queues."
        ),
        cfg.IntOpt(
            "send_retries", default=2, min=0, help="How often a message is tried again before it fails."
        ),
        cfg.IntOpt("threads", default=8, min=1, help="Messages that a process works on at the same time."),
    ],
    "notifications": [
        cfg.BoolOpt("enabled", default=False, help="Tell others of what happens to servers."),
        cfg.ListOpt("topics", default=["versioned_notifications"], help="The topics that are written to."),
        cfg.StrOpt(
            "transport_url",
            secret=True,
            help="RabbitMQ for notifications, if it is another one than that of the bus.",
        ),
    ],
}
