"""`moorage-manage install-files`: units, samples, manual pages and completion, put where systems look."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.errors import CommandError
from moorage.cli.options import Json


class FilePlaces(StrEnum):
    LOCAL = "local"
    PACKAGE = "package"


def install_files(
    root: Annotated[Path, typer.Option(help="Below which directory; / for this machine.")],
    programs: Annotated[
        Path | None,
        typer.Option(
            help="Where the commands are that units start. [default: where this one is]", show_default=False
        ),
    ] = None,
    place: Annotated[
        FilePlaces,
        typer.Option(help="`local` for /etc and /usr/local, `package` as packages of distributions have it."),
    ] = FilePlaces.LOCAL,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be written.")] = False,
    as_json: Json = False,
) -> None:
    """Write units of systemd, samples of configuration and policies, manual pages, and shell completion.

    The units start the commands that are beside this one. What is there already is replaced, and your own
    configuration is not touched: only samples are written. After that: systemd-sysusers, systemd-tmpfiles
    --create, systemctl daemon-reload.

    Example: /opt/moorage/bin/moorage-manage install-files --root /
    """
    from moorage.cli.packaging import files  # what nobody else needs

    layout = {FilePlaces.LOCAL: files.LOCAL, FilePlaces.PACKAGE: files.PACKAGE}[place]
    where = programs if programs is not None else Path(sys.argv[0]).absolute().parent
    told = []
    for file in files.packaged(layout, where):
        path = root / file.path
        changed = not (path.exists() and path.read_text() == file.content)
        if changed and not dry_run:
            _write(path, file.content)
        told.append({"path": str(path), "changed": changed})
    if as_json:
        typer.echo(json.dumps(told))
        return
    for one in told:
        typer.echo(f"{'written' if one['changed'] else 'as it was'}: {one['path']}")


def _write(path: Path, content: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o644)
    except OSError as error:
        raise CommandError(f"can't write {path}: {error}") from error
