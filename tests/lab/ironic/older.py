"""An Ironic as it was at an older release: newer versions are not told of, and not accepted."""

from __future__ import annotations

from tests.support.faulty_proxy import FaultyProxy

Version = tuple[int, int]


class OlderIronic(FaultyProxy):
    """Passes requests on to a newer one. Versions keep the behaviour of their day for ever."""

    def __init__(self, target: int, newest: Version) -> None:
        super().__init__(target)
        self.newest = newest

    def _pass_on(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        told = {"X-OpenStack-Ironic-API-Maximum-Version": f"{self.newest[0]}.{self.newest[1]}"}
        asked = headers.get("X-OpenStack-Ironic-API-Version", "1.1")
        if tuple(int(part) for part in asked.split(".")) > self.newest:
            return 406, told, b""
        status, answered, answer = super()._pass_on(method, path, headers, body)
        names = {name.lower() for name in told}
        kept = {name: value for name, value in answered.items() if name.lower() not in names}
        return status, {**kept, **told}, answer
