"""Which refusal a claim gets when several would do: the one that the reference gives."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.core import config, uuids
from moorage.placement.claims import Claim
from moorage.placement.errors import (
    ClassNotFound,
    ConsumerGenerationConflict,
    InvalidInventory,
    UnknownProvider,
)
from moorage.placement.service import PlacementService
from moorage.placement.store import providers
from moorage.placement.wsgi import OPTIONS

NODE = "10000000-0000-4000-8000-000000000001"
NOBODY = "20000000-0000-4000-8000-000000000002"


@pytest.mark.parametrize(
    ("refusal", "resources", "more"),
    [
        (InvalidInventory, {NODE: {"VCPU": 1}}, {}),
        (UnknownProvider, {NODE: {"VCPU": 1}, NOBODY: {"VCPU": 1}}, {}),
        (ClassNotFound, {NODE: {"VCPU": 1, "CUSTOM_UNKNOWN": 1}}, {}),
        (UnknownProvider, {NODE: {"CUSTOM_UNKNOWN": 1}, NOBODY: {"VCPU": 1}}, {}),
        (ConsumerGenerationConflict, {NOBODY: {"VCPU": 1}}, {"generation": 7}),
    ],
)
def test_what_does_not_exist_is_told_before_what_does_not_fit(
    sqlite_url: str, refusal: type[Exception], resources: dict[str, dict[str, int]], more: dict[str, Any]
) -> None:
    conf = config.read([], OPTIONS, {"database.connection": sqlite_url})
    service = PlacementService.from_conf(conf)
    service.start()
    service.database.transact(lambda connection: providers.create(connection, NODE, "node", None))
    with pytest.raises(refusal):
        service.claims.submit([Claim(uuids.generate(), "project", "user", resources, **more)])
    service.stop()
