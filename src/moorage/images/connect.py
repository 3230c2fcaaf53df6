"""The images of a process: the built-in catalogue, or the Glance that `[glance]` names."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core import openstack_services
from moorage.images.absent import AbsentImages
from moorage.images.contract import Images
from moorage.images.glance import GlanceImages
from moorage.images.link import ImageLink

GROUP = "glance"


def connect(conf: cfg.ConfigOpts, catalogue: Images) -> Images:
    """What `[images] provider` says; nothing is sent yet."""
    return GlanceImages(link(conf)) if conf.images.provider == "glance" else catalogue


def connect_conductor(conf: cfg.ConfigOpts, catalogue: Images) -> Images:
    """As `connect`; a conductor without credentials believes what it is told of images."""
    try:
        return connect(conf, catalogue)
    except openstack_services.NoCredentialsError:
        return AbsentImages()


def link(conf: cfg.ConfigOpts) -> ImageLink:
    return ImageLink(openstack_services.adapter(conf, GROUP, "image", conf.images.timeout))
