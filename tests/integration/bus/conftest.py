"""A broker for the tests of a module, and settings that name it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from moorage.bus.options import OPTIONS
from moorage.core import config, uuids
from tests.support import debian, rabbitmq
from tests.support.rabbitmq import RabbitMQ


@pytest.fixture(scope="module")
def broker() -> Iterator[RabbitMQ]:
    """Not to be ended."""
    try:
        with rabbitmq.room() as made:
            yield made
    except debian.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def conf(broker: RabbitMQ, tmp_path: Path) -> cfg.ConfigOpts:
    """A test has an exchange of its own, so that none sees another one's messages."""
    path = tmp_path / "moorage.conf"
    path.write_text(
        f"[DEFAULT]\ntransport_url = {broker.url}\n[bus]\nexchange = {uuids.generate()}\nsend_retries = 1\n"
    )
    return config.read([str(path)], [OPTIONS])
