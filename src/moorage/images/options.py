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
        cfg.StrOpt(
            "directory",
            default="/var/lib/moorage/images",
            help="Where the built-in catalogue keeps images' data; the same for all that serve its API.",
        ),
        cfg.IntOpt(
            "max_size",
            default=65536,
            min=1,
            help="MiB that an image of the built-in catalogue may have.",
        ),
        cfg.ListOpt(
            "import_hosts",
            default=[],
            help="Hosts from which the built-in catalogue imports images (web-download), each as a name or "
            "as name:port; none for all. Set it if the rule web_download_image lets others than "
            "administrators.",
        ),
        cfg.IntOpt(
            "timeout",
            default=30,
            min=1,
            help="Seconds that Glance has for an answer, where [glance] timeout says nothing else.",
        ),
    ]
}
