"""The range of microversions that the Placement API serves."""

from __future__ import annotations

from moorage.http.version import VersionRange
from moorage.placement.microversions import Microversion

VERSIONS = VersionRange("placement", Microversion.lowest(), Microversion.highest())
