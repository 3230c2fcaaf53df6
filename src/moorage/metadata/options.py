"""The `[metadata]` options."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options
from moorage.http.options import tls

OPTIONS: Options = {
    "metadata": [
        cfg.StrOpt("listen", default="127.0.0.1", help="Address that moorage-metadata listens on."),
        cfg.PortOpt("port", default=8775, help="Port that moorage-metadata listens on."),
        *tls("moorage-metadata"),
        cfg.IntOpt("workers", default=1, min=1, help="Processes that moorage-metadata runs."),
        cfg.IntOpt("threads", default=16, min=1, help="Requests that a process works on at the same time."),
        cfg.IntOpt(
            "max_request_body_size", default=16_384, min=1, help="Bytes that the body of a request may have."
        ),
        cfg.StrOpt(
            "shared_secret",
            secret=True,
            help="What those sign with who ask for guests: metadata_proxy_shared_secret of Neutron's agents, "
            "and the same option of moorage-agent. Without it nobody is answered.",
        ),
        cfg.StrOpt(
            "url",
            help="Where moorage-agent reaches moorage-metadata, for guests on networks of the built-in pool. "
            "Without it, such guests have only their config drives.",
        ),
        cfg.StrOpt(
            "cafile",
            help="File with certificates of authorities, in PEM, one of which has signed what "
            "moorage-metadata shows to moorage-agent; the system's, if not set.",
        ),
        cfg.StrOpt("certfile", help="File with the certificate that moorage-agent shows, and its key."),
    ]
}
