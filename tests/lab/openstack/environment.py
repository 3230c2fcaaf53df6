"""Where the programs of Neutron and Glance are."""

from __future__ import annotations

from pathlib import Path

from tests.support.environments import Environment

HERE = Path(__file__).resolve().parent
OPENSTACK = Environment("openstack", HERE / "requirements.txt", HERE / "constraints.txt")
