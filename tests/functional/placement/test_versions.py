"""A client finds out what the service speaks, follows when that changes, and says what it does without."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from moorage.placement.client.contract import PlacementUnavailableError
from moorage.placement.client.http import HttpPlacement
from moorage.placement.client.link import PlacementTooOldError
from moorage.placement.client.transport import PatientTransport, Response, SessionTransport
from tests.functional.placement.fleet import claim, node, node_uuid
from tests.support.older import OlderService

QUERY = [("limit", "5"), ("resources", "VCPU:1"), ("root_required", "!COMPUTE_STATUS_DISABLED")]


class Saying:
    """A service with this version document and nothing else."""

    def __init__(self, document: bytes) -> None:
        self._document = document

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        return Response(200 if path == "/" else 404, self._document)


def test_what_an_old_service_lacks_is_said_once(
    to_reference: SessionTransport, caplog: pytest.LogCaptureFixture
) -> None:
    client = HttpPlacement(OlderService(to_reference, (1, 30)))
    with caplog.at_level(logging.WARNING):
        client.report([node(1)])
        client.candidates(QUERY)
        assert client.claim([claim(1, on=1)]) == [None]
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("Placement speaks version 1.30: ")
    for part in ("in the tree asked for", "forbidden aggregates", "no bulk report", "no type", "tell why"):
        assert part in line


def test_a_service_of_ours_lacks_nothing(
    to_moorage: SessionTransport, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        HttpPlacement(to_moorage).report([node(1)])
    assert not caplog.records


def test_a_service_that_is_too_old_is_told_in_a_sentence(to_reference: SessionTransport) -> None:
    client = HttpPlacement(OlderService(to_reference, (1, 29)))
    with pytest.raises(PlacementTooOldError, match=r"no version above 1\.29, at least 1\.30 is needed"):
        client.candidates(QUERY)


def test_a_service_that_is_replaced_by_an_older_one_is_asked_again(to_reference: SessionTransport) -> None:
    """A load balancer may lead to the new and the old release while an upgrade is under way."""
    service = OlderService(to_reference, (1, 39))
    client = HttpPlacement(service)
    client.report([node(1)])
    service.newest = (1, 30)
    with pytest.raises(PlacementUnavailableError, match=r"does not speak version 1\.39 any more"):
        client.claim([claim(1, on=1)])
    assert client.claim([claim(1, on=1)]) == [None]
    (found,) = client.candidates(QUERY).allocation_requests
    assert found.mappings == {"": [node_uuid(1)]}


@pytest.mark.parametrize(
    "document",
    [b"", b"[]", b'{"versions": []}', b'{"versions": [{"max_version": "new"}]}', b"<html>welcome</html>"],
)
def test_a_version_document_that_makes_no_sense_is_no_answer(document: bytes) -> None:
    client = HttpPlacement(PatientTransport(Saying(document), first_pause=0.01))
    with pytest.raises(PlacementUnavailableError, match="makes no sense"):
        client.candidates(QUERY)
