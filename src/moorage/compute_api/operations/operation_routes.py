"""The ledger's part of the table of routes."""

from __future__ import annotations

from moorage.compute_api.endpoint import AdminEndpoint as E
from moorage.compute_api.endpoint import R
from moorage.compute_api.operations import operations

_OPERATIONS = "/moorage-operations"
_RULE = "moorage:operations:"

ROUTES: tuple[R, ...] = (
    R(_OPERATIONS, {"GET": E(operations.index, f"{_RULE}index", query=operations.INDEX)}),
    R(f"{_OPERATIONS}/{{operation_id}}", {"GET": E(operations.show, f"{_RULE}show")}),
    R(
        f"{_OPERATIONS}/{{operation_id}}/action",
        {"POST": E(operations.act, f"{_RULE}act", body=operations.ACT)},
    ),
)
