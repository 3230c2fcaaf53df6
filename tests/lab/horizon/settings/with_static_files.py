"""Horizon with its scripts and style sheets, which a web server in front of it serves elsewhere."""

from __future__ import annotations

from django.contrib.staticfiles.handlers import StaticFilesHandler
from openstack_dashboard.wsgi import application as horizon

application = StaticFilesHandler(horizon)
