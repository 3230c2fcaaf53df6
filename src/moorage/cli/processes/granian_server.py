"""Granian, which lets clients go before it closes their connections, with certificates that a reload reads
anew; neither they nor the rest of a configuration can end a service by being of no use."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from typing import Any

from granian.constants import SSLProtocols
from granian.server.mp import MPServer

from moorage.cli.errors import CommandError
from moorage.core.config import ConfigError
from moorage.http.draining import DrainNotice
from moorage.http.tls import TlsFiles

LOG = logging.getLogger(__name__)


def _is_news(record: logging.LogRecord) -> bool:
    """Granian warns of many threads at each start, of which few work at a time (`http/concurrency.py`)."""
    return "Python threads, which seems quite high" not in record.getMessage()


logging.getLogger("_granian").addFilter(_is_news)


class GranianServer(MPServer):
    def __init__(
        self,
        *args: Any,
        tls: TlsFiles | None,
        drain_seconds: float,
        judge: Callable[[], None],
        **options: Any,
    ) -> None:
        """`judge` raises if workers would not start with the configuration as it is now."""
        super().__init__(*args, **options)
        self._judge = judge
        self._reloading = threading.Lock()
        self._drain_seconds = drain_seconds
        self._notice = DrainNotice.of_parent()
        self._tls = tls
        self._take_certificate()

    def signal_handler_interrupt(self, number: int = 0, *rest: Any, **more: Any) -> None:
        """A second signal, or Control-C, ends it without further waiting."""
        if number == signal.SIGTERM and self._drain_seconds and not self._notice.ending:
            LOG.info("SIGTERM: the last requests are taken for %g s", self._drain_seconds)
            self._notice.end()
            end = threading.Timer(self._drain_seconds, self._end)
            end.daemon = True
            end.start()
            return
        self._notice.end()
        self._end()

    def _end(self) -> None:
        super().signal_handler_interrupt()  # type: ignore[no-untyped-call]

    def signal_handler_reload(self, *args: Any, **options: Any) -> None:
        """SIGHUP. To judge takes a while, in which this thread has other signals to heed."""
        threading.Thread(target=self._reload_workers, name="reload", daemon=True).start()

    def _reload_workers(self) -> None:
        """New workers would die of what they can't use, and the service with them: Granian gives up when one
        does not start."""
        with self._reloading:
            try:
                self._judge()
                self._take_certificate()
            except (CommandError, ConfigError) as error:
                LOG.error("SIGHUP is refused, and everything stays as it was: %s", error)
                return
            except Exception:
                LOG.exception(
                    "SIGHUP: nobody knows whether workers would start, and everything stays as it was"
                )
                return
            if not self._notice.ending:
                LOG.info("SIGHUP: new workers take up the configuration as it is now")
                self._notice.replace_workers()
                super().signal_handler_reload()  # type: ignore[no-untyped-call]

    def _take_certificate(self) -> None:
        """By the names that it was given with: what they point to may be another file than the last time."""
        if self._tls is None:
            return
        self._tls.context()
        self.build_ssl_context(
            self._tls.cert,
            self._tls.key,
            None,
            SSLProtocols.tls12,
            self._tls.client_ca,
            [],
            self._tls.client_ca is not None,
        )
