"""`moorage-agent`: the agent of one host, on RabbitMQ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from oslo_config import cfg

from moorage.agent.journal import Journal
from moorage.agent.ports import Ports, PortSettings
from moorage.agent.service import AgentService, AgentSettings
from moorage.bus.messaging import MessagingAgentSide
from moorage.cli import metrics, settings
from moorage.cli.errors import CommandError, Commands
from moorage.cli.options import ConfigFiles
from moorage.cli.processes import agent_driver, metadata_forwarding, neighbours, reloading
from moorage.cli.processes.placement_access import require_placement
from moorage.cli.processes.shutdown import Shutdown, ignore_hangup
from moorage.core import log, private, systemd, tracing
from moorage.drivers import installed
from moorage.drivers.plugin import DriverContext
from moorage.images.store import ApiImageStore
from moorage.network.connect import connect_agent
from moorage.placement.client.connect import connect

_JOURNAL = "journal.sqlite"

commands = Commands(help="Run the agent of one host.")


@commands.command()
def run(
    config_file: ConfigFiles = None,
    host: Annotated[
        str | None, typer.Option(help="The host's name; stays the same for ever.", show_default=False)
    ] = None,
    state_directory: Annotated[
        Path | None, typer.Option(help="Where the agent keeps its journal.", show_default=False)
    ] = None,
) -> None:
    """Run the agent until SIGTERM; what is at work then goes on after the next start.

    On SIGHUP it reads anew the level of its log, and which nodes of an Ironic it shall manage, and with whom;
    other drivers may have something of their own to read anew.

    It needs RabbitMQ ([DEFAULT] transport_url) and Placement ([placement_client]), but no database. With
    [network] and [neutron], it makes and binds ports itself as long as conductors can't, amid an upgrade.
    What is not given here comes from [agent] in the configuration.

    Example: moorage-agent --config-file /etc/moorage/moorage.conf --host rack-7-node-1
    """
    overrides: dict[str, object] = {}
    if host is not None:
        overrides["agent.host"] = host
    if state_directory is not None:
        overrides["agent.state_directory"] = str(state_directory)
    ignore_hangup()
    conf = settings.read(config_file, overrides)
    log.set_up(conf.log.level, conf.log.format, conf.agent.host)
    tracing.set_up(conf, "moorage-agent")
    require_placement(conf)
    plugin = installed.find(conf.agent.driver)
    directory = Path(conf.agent.state_directory)
    try:
        private.directory(directory, (_JOURNAL, *plugin.files))
        private.require(directory, directory / _JOURNAL)
    except OSError as error:
        raise CommandError(f"can't use the state directory {directory}: {error}") from error
    ending = Shutdown(conf.process.grace_seconds)
    ending.listen()
    placement = connect(conf)
    context = DriverContext(conf.agent.host, directory, conf, placement, ApiImageStore(conf))
    chosen = agent_driver.choose(plugin, context)
    service = AgentService(
        replace(AgentSettings.from_conf(conf), sweep_grace=chosen.loaded.sweep_grace),
        chosen.driver,
        MessagingAgentSide(conf, conf.agent.host),
        placement,
        Journal(directory / _JOURNAL),
        chosen.ownership,
        Ports(connect_agent(conf), PortSettings.from_conf(conf)),
    )
    notice = metrics.serve(
        conf.agent, [*service.checks(), *neighbours.broker(conf), *neighbours.placement(conf)]
    )
    service.start()
    drivers = {conf.agent.host: chosen.driver}
    forwarder = metadata_forwarding.start(metadata_forwarding.settings(conf, conf.metadata.url), drivers)

    def serve_others(changed: cfg.ConfigOpts) -> None:
        if chosen.apply(changed):
            service.look_soon()

    def on_hangup() -> None:
        reloading.take_up(lambda: settings.read(config_file, overrides), serve_others)

    systemd.tell_ready()
    ending.wait(on_hangup)
    notice.end()
    if forwarder is not None:
        forwarder.stop()
    service.stop()


def main() -> None:
    commands()
