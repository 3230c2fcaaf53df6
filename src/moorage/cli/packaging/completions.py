"""What shells have to know to complete what is typed: they ask the program itself."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from typer import completion

from moorage.cli.packaging.programs import STATUS

COMPLETED = ("moorage", "moorage-manage")
"""The others have a few options, and are seldom typed."""


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_STATUS = {
    Shell.BASH: f'complete -W "--config-file --version upgrade check --json" -o default {STATUS}',
    Shell.ZSH: f"#compdef {STATUS}\n\n_arguments '--config-file[A configuration file]:file:_files' "
    "'--version' '1:command:(upgrade)' '2:what:(check)' '--json[Print JSON]'",
    Shell.FISH: f"complete --command {STATUS} --long-option config-file --require-parameter\n"
    f"complete --command {STATUS} --long-option version\n"
    f"complete --command {STATUS} --long-option json\n"
    f'complete --command {STATUS} --no-files --arguments "upgrade check"',
}


def scripts(shell: Shell) -> Iterator[tuple[str, str]]:
    """The name of each program, and what is to be sourced for it."""
    for name in COMPLETED:
        asked = f"_{name.upper().replace('-', '_')}_COMPLETE"
        script = completion.get_completion_script  # type: ignore[attr-defined]
        yield name, script(prog_name=name, complete_var=asked, shell=shell) + "\n"
    yield STATUS, _STATUS[shell] + "\n"
