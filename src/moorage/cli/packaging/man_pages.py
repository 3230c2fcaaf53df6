"""Manual pages, from what the programs say of themselves with `--help`."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import typer

from moorage.cli.packaging.programs import PROGRAMS, STATUS, Program
from moorage.cli.version import release

_WIDTH = 72
"""Of lines in the source; a page is as wide as its reader's terminal."""
_STATUS_PAGE = (
    (
        "DESCRIPTION",
        "Tells whether a deployment is ready for the release that is installed here, and what to do if it is "
        "not. Leaves with 0 (ready), 1 (a warning), 2 (something must be done first) or 255 (the check "
        "itself failed).",
    ),
    ("EXAMPLE", f"{STATUS} --config-file /etc/moorage/moorage.conf upgrade check --json"),
)


def pages() -> Iterator[tuple[str, str]]:
    """The name of each program, and its page."""
    for program in PROGRAMS:
        yield program.name, page(program)
    yield STATUS, status_page()


def page(program: Program) -> str:
    command = program.command()
    context = typer.Context(command, info_name=program.name)
    lines = [
        *_head(program.name, program.summary),
        *_synopsis(command, context),
        ".SH DESCRIPTION",
        *_paragraphs(command.help),
        *_parameters(command, context, "SH"),
    ]
    below = list(_below(command, context))
    if below:
        lines.append(".SH COMMANDS")
        for child, child_context in below:
            lines += [
                f".SS {_escaped(child_context.command_path)}",
                *_usage(child, child_context),
                ".PP",
                *_paragraphs(child.help),
                *_parameters(child, child_context, None),
            ]
    return _ended(lines, program.name, program.files)


def status_page() -> str:
    lines = [
        *_head(STATUS, "is a deployment ready for this release?"),
        f".SH SYNOPSIS\n.B {_escaped(STATUS)}\n[\\-\\-config\\-file FILE] upgrade check [\\-\\-json]",
    ]
    for title, text in _STATUS_PAGE:
        lines += [f".SH {title}", *_paragraphs(text)]
    return _ended(lines, STATUS, ("/etc/moorage/moorage.conf",))


def _head(name: str, summary: str) -> list[str]:
    title = _escaped(name).upper()
    return [
        f'.TH "{title}" "1" "" "Moorage {release()}" "Moorage"',
        ".nh",
        ".ad l",
        f".SH NAME\n{_escaped(name)} \\- {_escaped(summary)}",
    ]


def _ended(lines: Iterable[str], name: str, files: Iterable[str]) -> str:
    others = [program.name for program in PROGRAMS if program.name != name]
    seen = ",\n".join(f".BR {_escaped(other)} (1)" for other in others)
    kept = "\n".join(f".TP\n.I {_escaped(path)}\nWhat it reads, if nothing else is named." for path in files)
    return "\n".join([*lines, f".SH FILES\n{kept}", f".SH SEE ALSO\n{seen}", ""])


def _below(command: Any, context: typer.Context) -> Iterator[tuple[Any, typer.Context]]:
    """All commands of a group, and of the groups in it."""
    for name, child in sorted(getattr(command, "commands", {}).items()):
        child_context = typer.Context(child, info_name=name, parent=context)
        if getattr(child, "commands", None):
            yield from _below(child, child_context)
        else:
            yield child, child_context


def _synopsis(command: Any, context: typer.Context) -> list[str]:
    return [".SH SYNOPSIS", *_usage(command, context)]


def _usage(command: Any, context: typer.Context) -> list[str]:
    pieces = " ".join(command.collect_usage_pieces(context))
    return [f".B {_escaped(context.command_path)}", _escaped(pieces)]


def _parameters(command: Any, context: typer.Context, heading: str | None) -> Iterator[str]:
    known = [record for one in command.get_params(context) if (record := one.get_help_record(context))]
    if known and heading:
        yield f".{heading} OPTIONS"
    for name, text in known:
        yield f".TP\n.B {_escaped(name)}"
        yield from _wrapped(text) or ["As it says."]


def _paragraphs(text: str | None) -> list[str]:
    lines: list[str] = []
    for part in inspect.cleandoc(text or "").split("\n\n"):
        if lines:
            lines.append(".PP")
        lines += _wrapped(part)
    return lines


def _wrapped(text: str) -> list[str]:
    found = textwrap.wrap(" ".join(text.split()), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [_escaped(line) for line in found]


def _escaped(text: str) -> str:
    """So that nothing of it is a command to the typesetter, which may begin a line after each choice."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...").replace("|", "|\\:")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain
