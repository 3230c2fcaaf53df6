"""A Placement service as it was at an older release: newer versions are not told of, and not accepted.

A microversion keeps the behaviour of its day for ever, so this is how that release would have answered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from moorage.placement.client.transport import Response, Transport

Version = tuple[int, int]


class OlderService:
    """Passes requests on to a newer service."""

    def __init__(self, transport: Transport, newest: Version) -> None:
        self._transport = transport
        self.newest = newest

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        if path == "/":
            return self._document(self._transport.send(method, path, body, headers))
        if self._asked(headers) > self.newest:
            return Response(406, b'{"errors": [{"status": 406, "detail": "Unacceptable version header"}]}')
        return self._transport.send(method, path, body, headers)

    def _document(self, answer: Response) -> Response:
        document = json.loads(answer.body)
        (version,) = document["versions"]
        version["max_version"] = f"{self.newest[0]}.{self.newest[1]}"
        version.pop("extensions", None)
        return Response(answer.status, json.dumps(document).encode())

    def _asked(self, headers: Mapping[str, str]) -> Version:
        service, _, number = headers["OpenStack-API-Version"].partition(" ")
        assert service == "placement"
        major, minor = number.split(".")
        return int(major), int(minor)
