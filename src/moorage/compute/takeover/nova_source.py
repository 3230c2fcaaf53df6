"""All databases of a cloud of Nova's, open at once, each read in one snapshot."""

from __future__ import annotations

import configparser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy.engine import Connection

from moorage.compute.takeover import api_reader, cell_reader
from moorage.compute.takeover.nova_cloud import NovaCell
from moorage.takeover.errors import TakeoverError
from moorage.takeover.foreign import ForeignDatabase


@dataclass(frozen=True)
class NovaSource:
    api: Connection
    cells: Sequence[Connection]
    """That of servers without a host is the last one."""


@dataclass(frozen=True)
class NovaAddresses:
    """Where the databases are."""

    api: str
    cells: tuple[str, ...] = ()
    """None: where the API's database says that they are."""
    template: str = ""
    """What Nova's own configuration has for `[database] connection`: cells may be told in terms of that."""


def from_file(path: Path) -> NovaAddresses:
    """As `nova.conf` has them."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(path.read_text())
    except (OSError, configparser.Error) as error:
        raise TakeoverError(f"{path} can't be read: {error}") from error
    api = parser.get("api_database", "connection", fallback="")
    if not api:
        raise TakeoverError(f"{path} has no [api_database] connection: name it by --api-database")
    return NovaAddresses(api, template=parser.get("database", "connection", fallback=""))


@contextmanager
def opened(addresses: NovaAddresses) -> Iterator[NovaSource]:
    """Each is known to be what it shall be."""
    with ExitStack() as stack:
        api = _connect(stack, addresses.api)
        api_reader.check(api)
        urls = addresses.cells or [_filled(cell, addresses.template) for cell in api_reader.cells(api)]
        cells = [_connect(stack, url) for url in urls]
        for cell in cells:
            cell_reader.check(cell)
        if not cells:
            raise TakeoverError("the API's database knows no cell: name one by --cell-database")
        yield NovaSource(api, cells)


def _connect(stack: ExitStack, url: str) -> Connection:
    return stack.enter_context(stack.enter_context(ForeignDatabase(url)).read())


def _filled(cell: NovaCell, template: str) -> str:
    """The address of a cell may leave parts to be filled from the configuration of whoever asks."""
    if "{" not in cell.database_connection:
        return cell.database_connection
    if not template:
        raise TakeoverError(
            f"the address of cell {cell.name or cell.uuid} is a template: name Nova's own configuration by "
            "--nova-conf, or each cell's database by --cell-database"
        )
    parts = urlsplit(template)
    return cell.database_connection.format(
        scheme=parts.scheme,
        username=parts.username or "",
        password=parts.password or "",
        hostname=parts.hostname or "",
        port="" if parts.port is None else parts.port,
        path=parts.path.removeprefix("/"),
        query=parts.query,
        fragment=parts.fragment,
    )
