"""oslo.messaging on native threads: that has to be said before it is imported for the first time."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import cast

from oslo_config import cfg

# oslo.service installs eventlet, and whatever finds it imports it, which patches nothing but warns on every
# start. An entry that is None makes it one that is not installed.
sys.modules.setdefault("eventlet", cast(ModuleType, None))

from oslo_service import backend  # noqa: E402

backend.register_backend_default_hook(lambda: backend.BackendType.THREADING)

import oslo_messaging  # noqa: E402
from oslo_messaging import opts  # noqa: E402

__all__ = ["oslo_messaging", "set_defaults"]

_RABBIT = "oslo_messaging_rabbit"
_DEFAULTS = {
    "rabbit_quorum_queue": False,  # a lone broker that is killed may leave new ones without a leader for ever
    "amqp_durable_queues": True,
    "heartbeat_timeout_threshold": 10,
    "heartbeat_rate": 2,
    "kombu_reconnect_delay": 0.5,
    "rabbit_interval_max": 5,
    "rabbit_qos_prefetch_count": 100,
}


def set_defaults(conf: cfg.ConfigOpts) -> None:
    """Queues that survive a restart of their broker, and quick reconnects, unless operators say otherwise."""
    for group, options in opts.list_opts():
        if group is None or str(group) == _RABBIT:
            conf.register_opts(options, group=group and _RABBIT)
    for name, value in _DEFAULTS.items():
        conf.set_default(name, value, group=_RABBIT)
    opts.set_defaults(conf, executor_thread_pool_size=conf.bus.threads)
