"""The consoles' part of the table of routes, and the rules that their handlers ask about by themselves."""

from __future__ import annotations

from oslo_policy import policy

from moorage.compute_api.consoles import console_tokens, diagnostics, remote_consoles, schemas, topology
from moorage.compute_api.endpoint import ADMIN, MEMBER, READER, RULE, Owned, R
from moorage.compute_api.microversions import Microversion
from moorage.http.rules import documented

_SERVER = "/servers/{server_id}"

ROUTES: tuple[R, ...] = (
    R(
        f"{_SERVER}/remote-consoles",
        {
            "POST": Owned(
                remote_consoles.create,
                remote_consoles.POLICY,
                MEMBER,
                since=Microversion.REMOTE_CONSOLES,
                body=schemas.OPEN,
            )
        },
    ),
    R(
        "/os-console-auth-tokens/{token}",
        {"GET": Owned(console_tokens.show, f"{RULE}os-console-auth-tokens", query=schemas.SHOW_TOKEN)},
    ),
    R(f"{_SERVER}/diagnostics", {"GET": Owned(diagnostics.show, f"{RULE}os-server-diagnostics")}),
    R(
        f"{_SERVER}/topology",
        {
            "GET": Owned(
                topology.show, "compute:server:topology:index", READER, since=Microversion.SERVER_TOPOLOGY
            )
        },
    ),
)

RULES: tuple[policy.DocumentedRuleDefault, ...] = (
    documented(
        topology.SEES_HOST,
        ADMIN,
        "See on which of the host's NUMA cells and processors a server is.",
        f"GET {_SERVER}/topology",
    ),
)
