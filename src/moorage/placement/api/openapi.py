"""The OpenAPI description of this API, made from the table of routes so that it can't fall behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from moorage.core.microversions import text
from moorage.http.call import Call
from moorage.http.reply import Reply
from moorage.http.route import Endpoint, Route
from moorage.placement.api.versions import VERSIONS
from moorage.placement.service import PlacementService

_VERSION_HEADER = {
    "name": "OpenStack-API-Version",
    "in": "header",
    "schema": {"type": "string", "enum": [f"placement {name}" for name in (*VERSIONS.names(), "latest")]},
}


def route(routes: Sequence[Route[PlacementService]]) -> Route[PlacementService]:
    """The route that describes `routes`."""
    document = describe(routes)

    def show(_service: PlacementService, _call: Call) -> Reply:
        """Describe this API to machines (OpenAPI 3.1)."""
        return Reply(body=document)

    return Route("/openapi.json", {"GET": Endpoint(show)})


def describe(routes: Sequence[Route[PlacementService]]) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "Moorage Placement", "version": text(VERSIONS.highest)},
        "paths": {
            route.path: {
                method.lower(): _operation(route.path, method, endpoint)
                for method, endpoint in route.methods.items()
            }
            for route in routes
        },
    }


def _operation(path: str, method: str, endpoint: Endpoint[PlacementService]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [_VERSION_HEADER]
    for name in re.findall(r"{(\w+)}", path):
        parameters.append({"name": name, "in": "path", "required": True, "schema": {"type": "string"}})
    if endpoint.query is not None:
        parameters += _query_parameters(endpoint.query.newest())
    operation: dict[str, Any] = {
        "operationId": f"{method.lower()}{path}",
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": {"default": {"description": "The answer, or an `errors` document."}},
    }
    if endpoint.body is not None:
        content = {"application/json": {"schema": endpoint.body.newest()}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _query_parameters(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Named parameters, and for those that take a suffix the bare one and one example."""
    properties = dict(schema.get("properties", {}))
    for pattern, definition in schema.get("patternProperties", {}).items():
        name = re.sub(r"\W.*", "", pattern.lstrip("^"))
        properties |= {name: definition, f"{name}1": definition}
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": definition}
        for name, definition in properties.items()
    ]
