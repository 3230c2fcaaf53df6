"""One cloud a module and backend; tests keep apart by the names and projects that they use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.compute import Cloud, User, cloud_on


@pytest.fixture(scope="module")
def cloud(module_database_url: str) -> Iterator[Cloud]:
    with cloud_on(module_database_url) as running:
        yield running


@pytest.fixture
def admin(cloud: Cloud) -> User:
    return cloud.admin
