"""`moorage-manage agent`: what makes an agent only itself: its user on RabbitMQ, and its keys."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from oslo_config import cfg

from moorage.bus import broker_users, key_file
from moorage.bus.broker_users import BrokerUser
from moorage.cli import settings
from moorage.cli.embedded.credentials import write_private
from moorage.cli.errors import CommandError, Commands
from moorage.cli.options import Json
from moorage.core import private

agent = Commands(
    help="What agents need to be only themselves.\n\n"
    "Example: moorage-manage agent credentials rack-7-node-1 --directory credentials"
)
KeysFile = Annotated[
    Path | None,
    typer.Option("--file", help="The master keys; by default [bus] keys_file.", show_default=False),
]


@agent.command("add-key")
def add_key(
    context: typer.Context,
    key_id: Annotated[
        str | None, typer.Option("--id", help="Its name; by default the time.", show_default=False)
    ] = None,
    file: KeysFile = None,
    as_json: Json = False,
) -> None:
    """Add a new master key to the file, which is made if it is not there.

    Conductors, APIs and proxies all need the same file; they read it again when it changes. Hosts get their
    own keys by `credentials`.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf agent add-key
    """
    path = _path(context, file)
    known = key_file.read(path) if path.exists() else {}
    name = key_id or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    if name in known:
        raise CommandError(f"{path} has a key {name} already")
    keys = {name: key_file.new_key(), **known}
    _write_keys(path, key_file.text(keys))
    _tell_keys(path, list(keys), as_json)


@agent.command("drop-key")
def drop_key(
    context: typer.Context,
    key_id: Annotated[str, typer.Argument(help="Its name.")],
    file: KeysFile = None,
    as_json: Json = False,
) -> None:
    """Take a master key out of the file: what is sealed with no other one is refused from now on.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf agent drop-key 20261117T120000Z
    """
    path = _path(context, file)
    keys = key_file.read(path)
    if keys.pop(key_id, None) is None:
        raise CommandError(f"{path} has no key {key_id}")
    if not keys:
        raise CommandError("it is the only one: add another key first")
    _write_keys(path, key_file.text(keys))
    _tell_keys(path, list(keys), as_json)


@agent.command()
def credentials(
    context: typer.Context,
    hosts: Annotated[list[str], typer.Argument(help="The hosts' names, as their agents have them.")],
    directory: Annotated[Path, typer.Option(help="Where the files are put.")] = Path("credentials"),
    file: KeysFile = None,
    keys_only: Annotated[
        bool, typer.Option("--keys-only", help="New keys, but no new user or password for RabbitMQ.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make each host a user of RabbitMQ that may do no more than an agent has to, and its keys.

    Below the directory there is one for each host: HOST/bus.keys and HOST/agent.conf are for its agent, and
    for nobody else. definitions.json is for RabbitMQ: `rabbitmqctl import_definitions definitions.json` adds
    the users, or gives them their new password; all else there stays.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf agent credentials rack-7-node-1
    """
    conf = settings.read(context.obj)
    masters = key_file.read(_path(context, file))
    brokers = None if keys_only else _Brokers(conf)
    made: list[dict[str, Any]] = []
    users: list[BrokerUser] = []
    for host in hosts:
        try:
            user = broker_users.of_agent(conf.bus.exchange, brokers.virtual_host if brokers else "/", host)
        except ValueError as error:
            raise CommandError(str(error)) from error
        below = directory / host
        private.directory(below)
        _write_keys(below / "bus.keys", key_file.text(key_file.host_keys(masters, host)))
        told: dict[str, Any] = {"host": host, "keys": str(below / "bus.keys"), "key_ids": list(masters)}
        if brokers is not None:
            _write_keys(below / "agent.conf", brokers.configuration(user))
            users.append(user)
            told |= {"configuration": str(below / "agent.conf"), "user": user.name}
            told["permissions"] = msgspec.to_builtins(user.permissions)
        made.append(told)
    definitions = directory / "definitions.json"
    if users:
        _write_keys(definitions, json.dumps(broker_users.definitions(users), indent=1) + "\n")
    _tell_credentials(made, str(definitions) if users else None, as_json)


class _Brokers:
    """Where RabbitMQ is, as `[DEFAULT] transport_url` says."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        from moorage.bus.oslo import oslo_messaging, set_defaults  # nearly a second

        set_defaults(conf)
        self._url = oslo_messaging.TransportURL.parse(conf, conf.transport_url)
        if not self._url.hosts:
            raise CommandError("[DEFAULT] transport_url names no RabbitMQ")
        self.virtual_host: str = self._url.virtual_host or "/"

    def configuration(self, user: BrokerUser) -> str:
        for host in self._url.hosts:
            host.username, host.password = user.name, user.password
        return (
            "# Of the agent of this host, and to be read by it alone; beside what all agents have.\n"
            f"[DEFAULT]\ntransport_url = {self._url}\n\n"
            "[bus]\nsigning = require\nhost_keys_file = /etc/moorage/bus.keys\n"
        )


def _path(context: typer.Context, file: Path | None) -> Path:
    named = file or settings.read(context.obj).bus.keys_file
    if not named:
        raise CommandError("no file of keys is named: --file, or [bus] keys_file")
    return Path(named)


def _write_keys(path: Path, text: str) -> None:
    """A file that is there keeps its owner and its mode: services may run under an account of their own."""
    try:
        write_private(path, text, like=path.stat() if path.exists() else None)
    except OSError as error:
        raise CommandError(f"can't write {path}: {error}") from error


def _tell_keys(path: Path, ids: list[str], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"file": str(path), "keys": ids}))
    else:
        typer.echo(f"{path}: {', '.join(ids)}")


def _tell_credentials(made: list[dict[str, Any]], definitions: str | None, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"hosts": made, "definitions": definitions}))
        return
    for one in made:
        files = ", ".join(one[name] for name in ("keys", "configuration") if name in one)
        typer.echo(f"{one['host']}: {files}")
    if definitions is not None:
        typer.echo(f"for RabbitMQ: rabbitmqctl import_definitions {definitions}")
