"""`moorage-manage placement owners`, `set-owner`, `unset-owner`: seen and changed as an operator does it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moorage.cli.errors import CommandError
from moorage.cli.manage.manage import commands
from moorage.core import uuids
from moorage.db import engine
from moorage.db.database import Database
from moorage.placement.store import providers
from moorage.placement.store.own_trees import OwnTrees
from moorage.placement.store.writable_trees import ANY_TREE

Manage = Callable[..., str]
ROOTS = {name: uuids.generate() for name in ("one", "two", "spare")}
AGENTS = {"one": "agent-1", "two": "agent-2"}


@pytest.fixture
def manage(tmp_path: Path, database_url: str) -> Manage:
    """Of three trees, two are those of agents; one has a child."""
    database = Database(engine.connect(database_url))
    own = {name: OwnTrees(agent, recording=False) for name, agent in AGENTS.items()}
    for name, uuid in ROOTS.items():
        database.transact(
            partial(providers.create, uuid=uuid, name=name, parent_uuid=None, trees=own.get(name, ANY_TREE))
        )
    database.transact(lambda c: providers.create(c, uuids.generate(), "below", ROOTS["one"]))
    database.engine.dispose()
    config = tmp_path / "moorage.conf"
    config.write_text(f"[database]\nconnection = {database_url}\n")

    def run(*words: str) -> str:
        given = ["--config-file", str(config), "placement", *words]
        done = CliRunner().invoke(commands, given, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


def listed(manage: Manage, *words: str) -> dict[str, Any]:
    return {row["name"]: row["user"] for row in json.loads(manage("owners", "--json", *words))["trees"]}


def test_trees_are_listed_with_whose_they_are(manage: Manage) -> None:
    assert listed(manage) == {"one": "agent-1", "two": "agent-2", "spare": None}
    assert listed(manage, "--unowned") == {"spare": None}
    assert manage("owners", "--unowned").split() == [ROOTS["spare"], "-", "spare"]


def test_trees_are_given_and_taken(manage: Manage) -> None:
    told = json.loads(manage("set-owner", "--user", "agent-3", "one", ROOTS["spare"], "--json"))
    assert told == {"trees": [ROOTS["one"], ROOTS["spare"]], "user": "agent-3"}
    assert listed(manage) == {"one": "agent-3", "two": "agent-2", "spare": "agent-3"}
    manage("set-owner", "--user", "agent-4", "--of", "agent-3")
    assert listed(manage) == {"one": "agent-4", "two": "agent-2", "spare": "agent-4"}
    manage("unset-owner", "two")
    manage("unset-owner", "--of", "agent-4")
    assert listed(manage, "--unowned").keys() == ROOTS.keys()
    assert "there are none" in manage("unset-owner", "--of", "agent-4")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("one", "nowhere"), "there is no provider nowhere"),
        (("below",), "below is the child of another provider"),
        ((), "no trees are named"),
    ],
)
def test_what_is_no_tree_changes_nothing(manage: Manage, words: tuple[str, ...], complaint: str) -> None:
    before = listed(manage)
    for command in (("set-owner", "--user", "agent-3"), ("unset-owner",)):
        with pytest.raises(CommandError, match=complaint):
            manage(*command, *words)
    assert listed(manage) == before
