"""Where programs with worker processes begin: their metrics need a directory before anything is imported.
To find that out later costs a second start."""

from __future__ import annotations

from moorage.core import metrics_directory


def api() -> None:
    metrics_directory.make()
    from moorage.cli.processes.api_server import main

    main()


def metadata() -> None:
    metrics_directory.make()
    from moorage.cli.processes.metadata_server import main

    main()


def placement() -> None:
    metrics_directory.make()
    from moorage.cli.processes.placement_server import main

    main()
