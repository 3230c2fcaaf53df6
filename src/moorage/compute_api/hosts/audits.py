"""`/moorage-audits`: have all that exists twice compared, and mended; conductors do it."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.compute.audits import audit as audits
from moorage.compute.audits import findings
from moorage.compute.audits.audit import Audit, CheckName, Repair
from moorage.compute.audits.findings import Finding
from moorage.compute_api import schema_types as types
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply
from moorage.http.schema import Schema

CREATE = Schema(
    types.closed(
        {
            "audit": types.closed(
                {
                    "only": {
                        "type": "array",
                        "items": {"type": "string", "enum": [name.value for name in CheckName]},
                        "uniqueItems": True,
                    },
                    "repair": {"type": "string", "enum": [choice.value for choice in Repair]},
                },
                (),
            )
        },
        ("audit",),
    )
)


def create(service: ComputeService, call: Call) -> Reply:
    """Ask for an audit."""
    asked = call.json()["audit"]
    repair = Repair(asked.get("repair", Repair.NOTHING.value))
    uuid = service.database.transact(
        lambda connection: audits.ask(connection, asked.get("only", []), repair, call.caller.user_id or "-")
    )
    return Reply(202, body=_shown(service, uuid))


def show(service: ComputeService, call: Call) -> Reply:
    """Show how far an audit is, and what differs."""
    return Reply(body=_shown(service, call.params["audit_id"]))


def _shown(service: ComputeService, uuid: str) -> dict[str, Any]:
    with service.database.read() as connection:
        audit = audits.find(connection, uuid)
        if audit is None:
            raise HttpError(404, f"Audit {uuid} could not be found.")
        checks = audit.checks or [name.value for name in CheckName]
        left = findings.open_ones(connection, checks, confirmed=True)
        mended = findings.repaired_since(connection, checks, audit.created_at)
    return {"audit": _audit(audit), "findings": [_finding(one) for one in [*left, *mended]]}


def _audit(audit: Audit) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(audit)
    return {"id": shown.pop("uuid"), **shown}


def _finding(finding: Finding) -> dict[str, Any]:
    """Without what only a check itself understands."""
    return {
        "check": finding.check_name,
        "sentence": finding.sentence,
        "since": finding.first_seen_at,
        "remedy": finding.remedy,
        "safe": finding.safe,
        "host": finding.host,
        "server_id": finding.server_uuid,
        "repaired": finding.ending is not None,
        "error": finding.error,
    }
