"""Options that several commands share, so that they read and behave alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.settings import ENVIRONMENT

ConfigFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--config-file",
        metavar="FILE",
        help=f"A configuration file; may be given more than once. Also named by {ENVIRONMENT}.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Cloud = Annotated[
    str | None,
    typer.Option(envvar="OS_CLOUD", help="A cloud of your clouds.yaml.", show_default=False),
]
Data = Annotated[Path, typer.Option(help="The data directory of `moorage up`; used if no cloud is named.")]
