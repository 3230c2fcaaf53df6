"""The images of a process: the built-in catalogue, or the Glance that `[glance]` names."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core import openstack_services
from moorage.db.database import Database
from moorage.images.catalogue import Catalogue
from moorage.images.contract import Images
from moorage.images.glance import GlanceImages


def connect(conf: cfg.ConfigOpts, database: Database) -> Images:
    """What `[images] provider` says; nothing is sent yet."""
    if conf.images.provider == "glance":
        return GlanceImages(openstack_services.adapter(conf, "glance", "image", conf.images.timeout))
    return Catalogue(database)
