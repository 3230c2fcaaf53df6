"""A line to Ironic on which things go wrong, for test modules that have a `metal`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.ironic.lines import port_of
from tests.lab.ironic.nodes import Nodes
from tests.support.faulty_proxy import FaultyProxy


@pytest.fixture
def proxy(metal: Nodes) -> Iterator[FaultyProxy]:
    made = FaultyProxy(port_of(metal))
    made.start()
    yield made
    made.stop()
