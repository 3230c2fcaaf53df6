"""How the documentation is built: `make docs`."""

from __future__ import annotations

import logging
from importlib.metadata import version as installed_version

logging.getLogger("reno").setLevel(logging.WARNING)

project = "Moorage"
author = "The Moorage authors"
copyright = "The Moorage authors"
release = installed_version("moorage")
version = release

extensions = ["myst_parser", "oslo_config.sphinxext", "reno.sphinxext"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "decisions/template.md"]

html_theme = "furo"
html_title = f"Moorage {release}"
html_static_path = ["_static"]
html_show_sphinx = False
