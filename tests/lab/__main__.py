"""Install programs and make the environments of the lab ahead of time: `python -m tests.lab`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.conformance.suites import CLIENT_SUITES
from tests.lab.client.openstack import CLIENT
from tests.lab.ironic.pristine import pristine_dump
from tests.lab.keystone.pristine import pristine_state
from tests.lab.libvirt.programs import ready
from tests.lab.nova.pristine import pristine_dumps
from tests.lab.openstack.pristine import pristine_schemas
from tests.lab.tempest.environment import TEMPEST
from tests.support import debian

LONGEST_FIRST = (
    *(debian.install_ahead, pristine_dumps, pristine_schemas, ready, pristine_state),
    *(pristine_dump, CLIENT_SUITES.bin, CLIENT.bin, TEMPEST.bin),
)

with ThreadPoolExecutor(2) as pool:
    for made in [pool.submit(make) for make in LONGEST_FIRST]:
        print(made.result())
