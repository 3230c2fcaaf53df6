"""A journal that can't be written: nothing is taken on, nothing is forgotten, and all goes on afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.agent.journal import JournalUnwritableError
from tests.support.processes import wait_until
from tests.unit.agent.stand import Stand


def set_writable(stand: Stand, *, writable: bool) -> None:
    """As on a file system that is full, or was mounted again for reading only after an error."""
    with stand.journal._lock:
        stand.journal._file.execute(f"PRAGMA query_only = {int(not writable)}")


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def test_what_can_not_be_written_down_is_not_taken_on_and_may_come_again(stand: Stand) -> None:
    set_writable(stand, writable=False)
    many = [stand.task("spawn", f"server-{number}") for number in range(20)]
    with pytest.raises(JournalUnwritableError):
        stand.do(*many)
    assert "readonly" in str(stand.journal.trouble())
    assert not stand.executor.busy()
    set_writable(stand, writable=True)
    stand.do(*many)
    assert {result.ok for result in stand.wait_for(20)} == {True}
    assert stand.journal.trouble() is None
    stand.end()


def test_what_was_done_meanwhile_is_told_once_it_can_be_kept(stand: Stand) -> None:
    """Its answer used to be lost, and whoever asked again was told nothing."""
    many = [stand.task("spawn", f"server-{number}", spawn="delay=0.3") for number in range(8)]
    stand.do(*many)
    set_writable(stand, writable=False)
    wait_until(lambda: stand.journal.trouble() is not None, "the journal to be in trouble", 10)
    stand.wait_idle()
    assert len(stand.results) < len(many)
    set_writable(stand, writable=True)
    stand.do(stand.task("spawn", "another"))  # with which the others are told, too
    told = {result.server_uuid for result in stand.wait_for(9)}
    assert told == {"another", *(task.server_uuid for task in many)}
    stand.end()
