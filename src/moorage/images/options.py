"""The `[images]` options: where images are looked up."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options

OPTIONS: Options = {
    "images": [
        cfg.StrOpt(
            "provider",
            default="catalogue",
            choices=["catalogue", "glance"],
            help="Where images are looked up: the built-in catalogue, or the Glance that [glance] names.",
        ),
        cfg.IntOpt(
            "timeout",
            default=30,
            min=1,
            help="Seconds that Glance has for an answer, where [glance] timeout says nothing else.",
        ),
    ]
}
