"""oslo.messaging on native threads: that has to be said before it is imported for the first time."""

from __future__ import annotations

import importlib
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

_ONLY_GLOBAL = {
    "oslo_messaging._metrics.client": "oslo_messaging_metrics",
    "oslo_messaging._tracing.client": "oslo_messaging_tracing",
}
"""Groups of options by the modules that have them under the same name."""
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
    _register_globals(conf)
    for name, value in _DEFAULTS.items():
        conf.set_default(name, value, group=_RABBIT)
    opts.set_defaults(conf, executor_thread_pool_size=conf.bus.threads)


def _register_globals(conf: cfg.ConfigOpts) -> None:
    """Its calls look for these among our options, but register them only with the global ones."""
    for module, group in _ONLY_GLOBAL.items():
        try:
            options = getattr(importlib.import_module(module), group)
        except (ImportError, AttributeError):  # a release that has none
            continue
        conf.register_opts(options, group=group)
