"""A client over HTTP when the service is away, answers get lost, or others write at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest
import requests

from moorage.placement.client.contract import (
    PlacementDeniedError,
    PlacementRefusedError,
    PlacementUnavailableError,
    ReportedProvider,
)
from moorage.placement.client.http import HttpPlacement
from moorage.placement.client.transport import (
    NotReachedError,
    PatientTransport,
    Response,
    SessionTransport,
    Transport,
)
from tests.functional.placement.fleet import EAST, claim, node, node_uuid, server_uuid
from tests.support.closing_server import ClosingHTTPServer
from tests.support.processes import free_port

VERSIONS = b'{"versions": [{"id": "v1.0", "max_version": "1.39", "min_version": "1.0"}]}'
CANDIDATES = b'{"allocation_requests": [], "provider_summaries": {}}'
QUERY = [("limit", "1"), ("resources", "VCPU:1")]


class LosingAnswers:
    """Passes requests on to a real service; the answers that `lose` picks never arrive."""

    def __init__(self, transport: Transport, lose: Callable[[str, str], bool]) -> None:
        self._transport = transport
        self._lose = lose
        self.sent: list[tuple[str, str]] = []

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        self.sent.append((method, path))
        answer = self._transport.send(method, path, body, headers)
        if self._lose(method, path):
            raise NotReachedError("the answer was lost")
        return answer


class Meddling:
    """Passes requests on, but lets somebody else act right before each of them."""

    def __init__(self, transport: Transport, before: Callable[[str, str], None]) -> None:
        self._transport = transport
        self._before = before

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        self._before(method, path)
        return self._transport.send(method, path, body, headers)


def once(condition: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    """True for the first request that meets the condition."""
    done: list[str] = []

    def first(method: str, path: str) -> bool:
        if done or not condition(method, path):
            return False
        done.append(path)
        return True

    return first


def is_claim(method: str, path: str) -> bool:
    return (method, path) == ("POST", "/allocations")


def is_inventory(method: str, path: str) -> bool:
    return method == "PUT" and path.endswith("/inventories")


def patient(transport: Transport) -> HttpPlacement:
    return HttpPlacement(PatientTransport(transport, first_pause=0.01))


@contextmanager
def answering(*answers: tuple[int, bytes]) -> Iterator[tuple[HttpPlacement, list[str]]]:
    """A client of a server that gives these answers, one after the other, and the last one for ever."""
    left = list(answers)
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ClosingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with requests.Session() as session:
            session.trust_env = False
            url = f"http://127.0.0.1:{server.server_port}"
            yield patient(SessionTransport(session, url, timeout=5)), asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_nobody_there() -> None:
    with requests.Session() as session:
        session.trust_env = False
        client = patient(SessionTransport(session, f"http://127.0.0.1:{free_port()}"))
        with pytest.raises(PlacementUnavailableError, match="does not answer"):
            client.candidates(QUERY)


def test_a_service_that_recovers_in_time_is_waited_for() -> None:
    with answering((503, b""), (200, VERSIONS), (502, b""), (500, b""), (200, CANDIDATES)) as (client, asked):
        assert client.candidates(QUERY).allocation_requests == []
        assert len(asked) == 5


def test_patience_ends() -> None:
    with answering((200, VERSIONS), (500, b"")) as (client, asked):
        with pytest.raises(PlacementUnavailableError, match="status 500"):
            client.candidates(QUERY)
        assert len(asked) == 5


@pytest.mark.parametrize("status", [401, 403])
def test_credentials_that_are_refused_are_not_the_fault_of_the_query(status: int) -> None:
    with answering((200, VERSIONS), (status, b"")) as (client, asked):
        with pytest.raises(PlacementDeniedError, match=f"status {status}"):
            client.candidates(QUERY)
        assert len(asked) == 2


def test_an_answer_that_makes_no_sense_is_no_answer() -> None:
    with (
        answering((200, VERSIONS), (200, b"<html>welcome</html>")) as (client, _),
        pytest.raises(PlacementUnavailableError, match="makes no sense"),
    ):
        client.candidates(QUERY)


@pytest.mark.parametrize("service", ["to_moorage", "to_reference"])
def test_a_claim_whose_answer_was_lost_has_come_true(service: str, request: pytest.FixtureRequest) -> None:
    client = patient(LosingAnswers(request.getfixturevalue(service), once(is_claim)))
    client.report([node(1)])
    assert client.claim([claim(1, on=1), claim(2, on=1)]) == [None, None]
    assert client.allocations(server_uuid(2))[1] == 1


def test_a_lost_answer_does_not_make_a_refusal_come_true(to_moorage: SessionTransport) -> None:
    client = patient(LosingAnswers(to_moorage, once(is_claim)))
    client.report([node(1, vcpus=3)])
    outcomes = client.claim([claim(1, on=1, vcpus=2), claim(2, on=1, vcpus=2)])
    assert [error is None for error in outcomes] == [True, False]


def test_claims_that_all_fit_take_one_request(to_moorage: SessionTransport) -> None:
    counting = LosingAnswers(to_moorage, lambda method, path: False)
    client = HttpPlacement(counting)
    client.report([node(1, vcpus=100)])
    counting.sent.clear()
    assert client.claim([claim(number, on=1, vcpus=1) for number in range(15)]) == [None] * 15
    assert counting.sent == [("POST", "/allocations")]


@pytest.mark.parametrize("part", ["inventories", "traits", "aggregates"])
def test_a_report_that_others_write_into_is_written_again(to_reference: SessionTransport, part: str) -> None:
    """Somebody claims on the node between our reading and our writing, so that its generation is another."""
    someone = HttpPlacement(to_reference)
    someone.report([node(1)])
    now = once(lambda method, path: method == "PUT" and path.endswith(part))
    claims: list[PlacementRefusedError | None] = []

    def meddle(method: str, path: str) -> None:
        if now(method, path):
            claims.extend(someone.claim([claim(1, on=1)]))

    wished = node(1, vcpus=32, traits=["CUSTOM_RED"], aggregates=[EAST])
    HttpPlacement(Meddling(to_reference, meddle)).report([wished])
    assert claims == [None]
    found = someone.candidates([*QUERY, ("member_of", EAST)]).provider_summaries[node_uuid(1)]
    assert found.resources["VCPU"] == {"capacity": 32, "used": 2}
    assert found.traits == ["CUSTOM_RED"]


def test_two_may_report_a_new_provider_at_the_same_time(to_reference: SessionTransport) -> None:
    someone = HttpPlacement(to_reference)
    now = once(lambda method, path: (method, path) == ("POST", "/resource_providers"))

    def meddle(method: str, path: str) -> None:
        if now(method, path):
            someone.report([node(1, vcpus=4)])

    HttpPlacement(Meddling(to_reference, meddle)).report([node(1, vcpus=32)])
    found = someone.candidates(QUERY).provider_summaries[node_uuid(1)]
    assert found.resources["VCPU"]["capacity"] == 32


def test_a_name_that_another_provider_has_is_refused(to_reference: SessionTransport) -> None:
    client = HttpPlacement(to_reference)
    client.report([node(1)])
    with pytest.raises(PlacementRefusedError) as caught:
        client.report([ReportedProvider(node_uuid(2), "node-1")])
    assert caught.value.status == 409


def test_a_provider_that_changes_all_the_time_is_given_up(to_reference: SessionTransport) -> None:
    someone = HttpPlacement(to_reference)
    someone.report([node(1, vcpus=64)])
    claims: list[PlacementRefusedError | None] = []

    def meddle(method: str, path: str) -> None:
        if is_inventory(method, path):
            claims.extend(someone.claim([claim(len(claims), on=1)]))

    with pytest.raises(PlacementUnavailableError, match="again and again"):
        HttpPlacement(Meddling(to_reference, meddle)).report([node(1, vcpus=128)])
    assert claims
    assert all(error is None for error in claims)


def test_an_unchanged_provider_is_only_read(to_reference: SessionTransport) -> None:
    counting = LosingAnswers(to_reference, lambda method, path: False)
    client = HttpPlacement(counting)
    reported = [node(1, traits=["HW_CPU_X86_AVX2"], aggregates=[]), ReportedProvider(node_uuid(2), "bare")]
    client.report(reported)
    counting.sent.clear()
    client.report(reported)
    assert {method for method, _ in counting.sent} == {"GET"}
