"""Start Ironic: its API, and a conductor for each conductor group, on a PostgreSQL of the tests."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

import requests
from psycopg import sql

from tests.lab.ironic import hardware, settings
from tests.lab.ironic.nodes import HEADERS, Nodes
from tests.lab.ironic.pristine import IRONIC, ironic_database
from tests.support import forked_programs
from tests.support.postgres import Postgres
from tests.support.processes import Service, free_port, start_service, wait_until
from tests.support.profiles import Settings, ini

_WSGI = """import sys
sys.argv[:] = ["ironic-api", "--config-file", {config!r}]
from ironic.wsgi import application
"""
_QUIET = {"PYTHONWARNINGS": "ignore"}
_IMPORTS = (
    *("ironic.command.conductor", "ironic.api.wsgi", "ironic.api.app", "ironic.objects"),
    *("ironic.db.sqlalchemy.api", "ironic.common.image_service"),
    "keystonemiddleware.auth_token",
    *("psycopg2", "sqlalchemy.dialects.postgresql.psycopg2"),
)
"""What its services take most of their start for. Not its manager, which looks at its configuration when it
is imported, nor gunicorn, which looks where it is."""


class Neighbours(Protocol):
    """The services that an Ironic uses, if it is none that stands alone."""

    @property
    def token(self) -> str:
        """An administrator's."""
        ...

    def known_to(self, alone: Settings) -> Settings:
        """What its configuration says of them, besides what it says anyway."""
        ...


@contextmanager
def running(
    directory: Path,
    database: Postgres,
    groups: Sequence[str] = ("a", "b"),
    deploy_delay: int = 0,
    beside: Neighbours | None = None,
    *,
    utc: bool = False,
) -> Iterator[Nodes]:
    """A new, empty Ironic; what is yielded enrols nodes in it and asks about them. With `utc` its database
    has that time zone, without which Ironic can't page by times."""
    programs, port = IRONIC.bin(), free_port()
    forked_programs.share(programs, _QUIET, *_IMPORTS)
    token = "" if beside is None else beside.token
    with ExitStack() as stack:
        url = ironic_database(database)
        if utc:
            database.execute(sql.SQL("ALTER DATABASE ironic SET timezone TO 'UTC'").format())
        config = directory / "ironic.conf"
        common = settings.common(directory, url, port, deploy_delay)
        config.write_text(ini(common if beside is None else beside.known_to(common)))
        environment = _environment(hardware.install(directory))
        # Nothing in it is worth a polite end, which takes long.
        stack.callback(_api(programs, directory, config, port).kill)
        for group, address in zip(groups, _addresses(len(groups)), strict=True):
            stack.callback(_conductor(programs, config, group, address, environment).kill)
        nodes = Nodes(f"http://127.0.0.1:{port}", directory, token)
        wait_until(lambda: nodes.conductors() == len(groups), "Ironic's conductors", 120)
        yield nodes


def _addresses(count: int) -> Iterator[str]:
    """A net of their own, so that several Ironics on one machine don't meet."""
    chance = random.SystemRandom()
    net = f"127.{chance.randrange(1, 255)}.{chance.randrange(255)}"
    return (f"{net}.{number}" for number in range(1, count + 1))


def _api(programs: Path, directory: Path, config: Path, port: int) -> Service:
    (directory / "ironic_of_the_tests.py").write_text(_WSGI.format(config=str(config)))
    command: list[str | Path] = [
        *(programs / "gunicorn", "--pythonpath", directory, "--bind", f"127.0.0.1:{port}"),
        *("--worker-class", "gthread", "--threads", "16", "--graceful-timeout", "2"),
        *("--no-control-socket", "ironic_of_the_tests:application"),
    ]

    def answers() -> bool:
        try:
            return requests.get(f"http://127.0.0.1:{port}/v1", headers=HEADERS, timeout=10).ok
        except requests.RequestException:
            return False

    return start_service(command, port, directory / "api.log", _QUIET, ready=answers, timeout=120)


def _conductor(
    programs: Path, config: Path, group: str, address: str, environment: dict[str, str]
) -> Service:
    directory = config.parent
    own = directory / f"conductor-{group}.conf"
    own.write_text(ini(settings.conductor(group, address)))
    command: list[str | Path] = [programs / "ironic-conductor", "--config-file", config, "--config-file", own]
    return start_service(command, 0, directory / f"conductor-{group}.log", environment, ready=lambda: True)


def _environment(plugins: Path) -> dict[str, str]:
    return {**_QUIET, "PYTHONPATH": str(plugins)}
