"""Make the environments of the lab ahead of time: `python -m tests.lab`."""

from __future__ import annotations

from tests.conformance.suites import CLIENT_SUITES
from tests.lab.client.openstack import CLIENT
from tests.lab.ironic.service import IRONIC
from tests.lab.keystone.pristine import pristine_state
from tests.lab.nova.pristine import pristine_dumps
from tests.lab.openstack.environment import OPENSTACK

print(CLIENT.bin())
print(CLIENT_SUITES.bin())
print(pristine_state())
print(OPENSTACK.bin())
print(IRONIC.bin())
print(pristine_dumps())
