"""Which microversion a request speaks."""

from __future__ import annotations

import pytest

from moorage.core.microversions import Version
from moorage.http.errors import HttpError
from moorage.http.version import VersionRange

PLAIN = VersionRange("placement", (1, 0), (1, 39))
WITH_LEGACY = VersionRange("compute", (2, 1), (2, 96), legacy_header="x-old")


@pytest.mark.parametrize(
    ("headers", "version"),
    [
        ({}, (2, 1)),
        ({"openstack-api-version": "compute 2.10"}, (2, 10)),
        ({"openstack-api-version": "compute latest"}, (2, 96)),
        ({"openstack-api-version": "placement 1.39"}, (2, 1)),
        ({"openstack-api-version": "placement 1.39, compute 2.9"}, (2, 9)),
        ({"x-old": "2.7"}, (2, 7)),
        ({"x-old": "latest"}, (2, 96)),
        ({"x-old": "2.7", "openstack-api-version": "compute 2.8"}, (2, 8)),
        ({"x-old": "2.7", "openstack-api-version": "placement 1.8"}, (2, 7)),
    ],
)
def test_what_the_headers_ask_for(headers: dict[str, str], version: Version) -> None:
    assert WITH_LEGACY.requested(headers.get) == version


@pytest.mark.parametrize(
    ("asked", "status"), [("2.97", 406), ("2.0", 406), ("3.1", 406), ("two", 400), ("2", 400), ("2.x", 400)]
)
def test_what_is_refused(asked: str, status: int) -> None:
    for headers in ({"openstack-api-version": f"compute {asked}"}, {"x-old": asked}):
        with pytest.raises(HttpError) as refused:
            WITH_LEGACY.requested(headers.get)
        assert refused.value.status == status


def test_a_service_without_legacy_header_ignores_it() -> None:
    assert PLAIN.requested({"x-old": "1.5"}.get) == (1, 0)
    assert PLAIN.headers((1, 5)) == {"openstack-api-version": "placement 1.5"}
    assert WITH_LEGACY.headers((2, 5)) == {"openstack-api-version": "compute 2.5", "x-old": "2.5"}
