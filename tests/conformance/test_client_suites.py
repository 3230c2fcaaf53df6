"""The official client's own functional tests of its Placement commands pass against our service.

Each of them expects an empty service, and many of them read what the client makes of a refusal.
"""

from __future__ import annotations

import pytest

from tests.conformance.suites import ClientRunner, client_suites, readable
from tests.support.stage import Stage


def test_all_tests_are_here(client: ClientRunner) -> None:
    assert sum(len(client.names(suite)) for suite in client_suites()) == 160


@pytest.mark.parametrize("suite", client_suites())
def test_suite(suite: str, client: ClientRunner, moorage_on_sqlite: Stage) -> None:
    names = client.names(suite)
    verdicts = [client.run(name, f"http://127.0.0.1:{moorage_on_sqlite.fresh()}") for name in names]
    failed = [verdict for verdict in verdicts if verdict.outcome != "pass"]
    if failed:
        pytest.fail(readable(failed, len(names)), pytrace=False)
