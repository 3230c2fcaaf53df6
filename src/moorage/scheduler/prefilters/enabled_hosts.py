"""Hosts that an operator has disabled: their nodes carry a trait, so that they use up no candidates."""

from __future__ import annotations

from dataclasses import replace

from moorage.scheduler.request import Request

DISABLED_TRAIT = "COMPUTE_STATUS_DISABLED"


class EnabledHosts:
    def narrow(self, request: Request) -> Request:
        return replace(request, root_forbidden=request.root_forbidden | {DISABLED_TRAIT})
