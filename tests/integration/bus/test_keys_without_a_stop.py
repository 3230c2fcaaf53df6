"""`docs/operate/security.md`, word by word, on a cloud that is at work: seals come, and keys are rotated.

Only what the page says is restarted. At the end a host was forgotten, and nothing that it says is believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.bus.keyed_cloud import HOST, KeyedCloud, User
from tests.support.deployment import Part
from tests.support.postgres import Postgres
from tests.support.processes import wait_until
from tests.support.rabbitmq import RabbitMQ

REFUSED, UNSEALED = "moorage_bus_refused_total", "moorage_bus_unsealed_total"
LISTEN_FAILURES = "moorage_bus_listen_failures_total"
KINDS = ("tasks", "results", "heartbeat", "question", "answer")


@pytest.fixture
def cloud(tmp_path: Path, postgres: Postgres, broker: RabbitMQ) -> Iterator[KeyedCloud]:
    made = KeyedCloud(tmp_path, postgres, broker)
    try:
        made.deployment.start()
        yield made
    finally:
        made.deployment.stop()
        postgres.drop_database("moorage")


def test_seals_come_and_keys_change_without_a_stop(cloud: KeyedCloud) -> None:
    user = User(cloud)
    kept = user.boot()
    user.await_active(kept)
    introduce_seals(cloud, user)
    first_keys = cloud.host_keys.read_text()
    rotate_keys(cloud, user)
    user.read_console(kept)
    assert cloud.all_counted(REFUSED) == {}
    forget_a_host(cloud, user, kept, first_keys)


def introduce_seals(cloud: KeyedCloud, user: User) -> None:
    """The four steps of "Set it up, without a stop"."""
    for part in cloud.masters:
        cloud.configure(part, "accept", cloud.everybody)
    cloud.manage("add-key", "--id", "first")
    cloud.copy_master_keys()
    for part in cloud.masters:
        cloud.restart(part)
        user.life()
    assert cloud.counted(cloud.conductor, UNSEALED)

    cloud.make_credentials()
    cloud.rabbitmqctl("import_definitions", str(cloud.credentials / "definitions.json"))
    user.life()

    cloud.copy_host_keys()
    cloud.configure(cloud.agent, "accept")
    cloud.restart(cloud.agent)
    user.life()
    assert not any(cloud.counted(cloud.agent, LISTEN_FAILURES).values())
    before = cloud.all_counted(UNSEALED)
    user.life()
    assert cloud.all_counted(UNSEALED) == before

    for part in cloud.masters:
        cloud.configure(part, "require")
        cloud.restart(part)
        user.life()
    cloud.configure(cloud.agent, "require")
    cloud.restart(cloud.agent)
    cloud.rabbitmqctl("delete_user", cloud.everybody)
    user.life()
    assert cloud.all_counted(REFUSED) == cloud.all_counted(UNSEALED) == {}


def rotate_keys(cloud: KeyedCloud, user: User) -> None:
    """The commands of "Rotate the keys"; users go on."""
    processes = [part.service for part in cloud.deployment.parts]
    with user:
        user.await_rounds()
        cloud.manage("add-key", "--id", "second")
        taken_up(cloud, user, cloud.conductor, "second, first")
        cloud.copy_master_keys()
        taken_up(cloud, user, cloud.api, "second, first")
        cloud.make_credentials("--keys-only")
        cloud.copy_host_keys()
        taken_up(cloud, user, cloud.agent, "second, first")
        cloud.manage("drop-key", "first")
        taken_up(cloud, user, cloud.conductor, "second")
        cloud.copy_master_keys()
        taken_up(cloud, user, cloud.api, "second")
        cloud.make_credentials("--keys-only")
        cloud.copy_host_keys()
        taken_up(cloud, user, cloud.agent, "second")
    assert user.failures == []
    assert [part.service for part in cloud.deployment.parts] == processes


def taken_up(cloud: KeyedCloud, user: User, part: Part, keys: str) -> None:
    """The process says so in its log, and users notice nothing."""
    wait_until(lambda: cloud.told_keys(part) == keys or bool(user.failures), f"{keys} at {part.name}", 60)
    user.await_rounds()
    assert user.failures == []


def forget_a_host(cloud: KeyedCloud, user: User, kept: str, first_keys: str) -> None:
    """As if nobody had brought it the second key."""
    second_keys = cloud.host_keys.read_text()
    slow = user.boot(**{"fake:spawn": "delay=8"})
    wait_until(lambda: user.show(slow)["OS-EXT-STS:task_state"] == "spawning", "the spawn", 60)
    cloud.host_keys.write_text(first_keys)
    wait_until(lambda: "results" in forged(cloud, cloud.conductor), "the result to be refused", 60)
    assert (user.show(slow)["status"], user.show(slow)["OS-EXT-STS:task_state"]) == ("BUILD", "spawning")
    cloud.host_keys.write_text(second_keys)
    user.await_active(slow)  # asked again, and not done again
    assert {server.uuid for server in cloud.deployment.kept_by(HOST)} == {kept, slow}

    before = forged(cloud, cloud.conductor)["heartbeat"]
    cloud.host_keys.write_text(first_keys)
    wait_until(lambda: forged(cloud, cloud.conductor)["heartbeat"] > before, "a refusal", 60)
    assert user.console(kept).status_code == 503
    assert forged(cloud, cloud.agent)["question"] == 1
    wait_until(lambda: not cloud.deployment.hosts_up(), "the host to be down", 60)


def forged(cloud: KeyedCloud, part: Part) -> dict[str, float]:
    """Messages that it refused because of their seal, by kind."""
    found = cloud.counted(part, REFUSED)
    names = {kind: f'{{kind="{kind}",reason="forged"}}' for kind in KINDS}
    return {kind: found[name] for kind, name in names.items() if name in found}
