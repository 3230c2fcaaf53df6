"""Kill Moorage at random while it makes, binds and deletes ports in a real Neutron, for minutes.

`make chaos` runs this; in CI a short storm is among the tests with Neutron, which have one running anyway.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.chaos.port_storm import PortStorm
from tests.integration import openstack_site

SCHEDULES = (int(os.environ.get("CHAOS_SCHEDULES", "0")) + 3) // 4
"""Each takes as long as four of the others."""
SECONDS = 60.0
FIRST_SEED = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(10**6)))


@pytest.mark.skipif(not SCHEDULES, reason="CHAOS_SCHEDULES is not set: see `make chaos`")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.timeout(600 + 200 * SCHEDULES)
def test_whatever_dies_neutron_has_the_ports_of_the_living(tmp_path: Path) -> None:
    with openstack_site.running(tmp_path) as site:
        plain = site.plain_network("plain")
        ranges = {"physnet1": "10.20.1.0/24", "physnet2": "10.20.2.0/24"}
        routed = site.routed_network("routed", ranges, 110)
        for seed in range(FIRST_SEED, FIRST_SEED + SCHEDULES):
            print(f"seed {seed}")
            storm = PortStorm(site, [plain, routed], random.Random(seed))
            storm.rage(SECONDS)
            print(f"{storm.kills} kills")
            assert storm.differences() == []
            storm.clean_up()
            assert [port for port in site.admin.network.ports() if port.device_id] == []
