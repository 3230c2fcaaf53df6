"""Commands that the pages tell to type: there is such a command, and it takes these options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from moorage.cli import main
from moorage.cli.manage import manage
from moorage.cli.processes import agent, api_server, conductor, placement_server
from tests.unit.docs.pages import ROOT, pages

COMMANDS = {
    "moorage": main.commands,
    "moorage-manage": manage.commands,
    "moorage-placement": placement_server.commands,
    "moorage-api": api_server.commands,
    "moorage-conductor": conductor.commands,
    "moorage-agent": agent.commands,
}
STATUS = "moorage-status"
"""Its command line is oslo.upgradecheck's."""
_SUBSTITUTION = re.compile(r"\$\([^)]*\)")
_TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)


def _calls(line: str) -> Iterator[list[str]]:
    """The calls of programs of ours in a line of shell."""
    try:
        lexer = shlex.shlex(_SUBSTITUTION.sub("X", line), posix=True, punctuation_chars=";&|<>")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:  # not a whole command: an example of something else
        return
    call: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if word.strip(";&|<>") == "":
            if call:
                yield call
            call = []
        elif call:
            call.append(word)
        elif _program(word) and (not before or before in ("&&", "|", ";", "sudo") or "bin/" in word):
            call = [_program(word), *call]
    if call:
        yield call


def _program(word: str) -> str:
    name = word.rpartition("/")[2]
    return name if name in COMMANDS or name == STATUS else ""


CALLS = sorted({(page.name, *call) for page in pages() for line in page.commands() for call in _calls(line)})


def test_there_are_many() -> None:
    assert {call[1] for call in CALLS} == {*COMMANDS, STATUS}
    assert len(CALLS) > 40


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_command_on_a_page_can_be_given(call: Sequence[str]) -> None:
    _, program, *words = call
    if program == STATUS:
        assert [word for word in words if not word.startswith(("-", "/")) and "." not in word] in (
            [],
            ["upgrade", "check"],
        )
        return
    command = get_command(COMMANDS[program])
    while words:
        word = words.pop(0)
        if word.startswith("-"):
            name, _, value = word.partition("=")
            options = {flag: option for option in command.params for flag in option.opts if flag[0] == "-"}
            assert name in {*options, "--help"}, f"{command.name} takes no {name}"
            if name in options and not value and not getattr(options[name], "is_flag", False):
                words = words[1:]
        elif isinstance(command, TyperGroup):
            assert word in command.commands, f"{command.name} knows no {word}"
            command = command.commands[word]


def test_make_has_the_targets_that_pages_name() -> None:
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text()))
    named = {
        (page.name, words[1])
        for page in pages()
        for line in page.commands()
        if len(words := line.split()) > 1 and words[0] == "make"
    }
    assert len(named) > 15
    assert {(page, target) for page, target in named if target not in targets} == set()
