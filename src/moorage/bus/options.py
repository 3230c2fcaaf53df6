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
        cfg.StrOpt(
            "management_url",
            secret=True,
            help="Where RabbitMQ's management API is, as `http://rabbit:15672`: an audit asks it for queues "
            "of hosts that nobody remembers, and conductors how many messages wait for hosts. Without a "
            "user, that of transport_url is taken.",
        ),
        cfg.IntOpt("threads", default=8, min=1, help="Messages that a process works on at the same time."),
        cfg.StrOpt(
            "signing",
            default="off",
            choices=[
                ("off", "messages have no seals, and none are looked at"),
                ("accept", "messages are sealed; what comes without a seal is taken, as amid an upgrade"),
                ("require", "what is not sealed by the host that it speaks of, or is for, is refused"),
            ],
            help="Whether messages show who sent them. All processes on the bus need keys for it.",
        ),
        cfg.StrOpt(
            "keys_file",
            help="The master keys, for conductors, APIs and proxies; `moorage-manage agent add-key` makes it."
            " Read again when it changes.",
        ),
        cfg.StrOpt(
            "host_keys_file",
            help="The keys of one host, for its agent; `moorage-manage agent credentials` makes it."
            " Read again when it changes.",
        ),
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
