"""Horizon's local_settings.py. Of the cloud it says where Keystone is; Keystone's catalogue has the rest."""

from __future__ import annotations

import os

OPENSTACK_KEYSTONE_URL = os.environ["HORIZON_KEYSTONE_URL"]
ALLOWED_HOSTS = ["127.0.0.1"]
SECRET_KEY = "for tests on loopback only"
STATIC_ROOT = os.environ["HORIZON_STATIC_ROOT"]
COMPRESS_OFFLINE = True
OPENSTACK_NEUTRON_NETWORK = {"enable_quotas": False}
"""Horizon 27.0.0 can't read Neutron's quotas of a project, with whatever Compute service."""
X_FRAME_OPTIONS = "SAMEORIGIN"
"""Django's default is that nobody may embed a page, and Horizon embeds its own page with a serial line."""
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
"""Sessions are kept there; Horizon's own default is a memcached, which one process does not need."""
