"""What the user of an agent may name on the broker; the broker itself is asked in tests/integration/bus."""

from __future__ import annotations

import re

import pytest

from moorage.bus import broker_users, permissions
from moorage.bus.queues import QueueNames, new_asker

NAMES = QueueNames("moorage")


@pytest.mark.parametrize("other", ["host-10", "xhost-1", "host-1.info", "host.1", "HOST-1", "host-1|moorage"])
def test_no_name_of_a_host_opens_what_is_anothers(other: str) -> None:
    may = permissions.of_agent("moorage", "host-1")
    for queue in (NAMES.agent(other), NAMES.questions(other), NAMES.conductors, NAMES.answers(new_asker())):
        for pattern in (may.configure, may.read, may.write, may.topic_read):
            assert re.search(pattern, queue) is None
    assert re.search(may.topic_write, NAMES.agent("host-1")) is None
    assert re.search(may.configure, "moorage") is None


@pytest.mark.parametrize("host", ["host-1", "host.example.com", "a+b", "ü", "a(b", "conductors"])
def test_its_own_is_open_to_it(host: str) -> None:
    may = permissions.of_agent("moorage", host)
    for queue in (NAMES.agent(host), NAMES.questions(host)):
        assert all(re.search(each, queue) for each in (may.configure, may.read, may.write, may.topic_read))
    assert re.search(may.write, "moorage")
    assert re.search(may.topic_write, NAMES.conductors)
    assert re.search(may.topic_write, NAMES.answers(new_asker()))


@pytest.mark.parametrize("host", ["", "a b", "a/b", "a*", "#", "a\nb", "../x"])
def test_a_name_that_means_something_to_the_broker_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match="can't be the name"):
        broker_users.of_agent("moorage", "/", host)


def test_definitions_have_no_password_in_them() -> None:
    user = broker_users.of_agent("moorage", "/", "host-1")
    assert user.password not in str(broker_users.definitions([user]))
    assert user.password not in repr(user)
