"""`moorage-status upgrade check`: is this deployment ready for the release that is installed here?"""

from __future__ import annotations

import sys
from datetime import timedelta

import sqlalchemy as sa
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
from sqlalchemy.engine import Engine

from moorage.bus.versions import AgentVersion
from moorage.cli import settings
from moorage.cli.version import release
from moorage.compute.hosts import liveness
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.compute.quotas import unified
from moorage.compute.quotas.keystone_limits import LimitsUnavailableError
from moorage.core.config import ConfigError
from moorage.core.microversions import text
from moorage.db import engine, large_indexes, schema_fit
from moorage.db.order import by_character
from moorage.db.schema_fit import SYNC, Fit
from moorage.db.tables.compute import services
from moorage.network import probe as network_probe
from moorage.placement.client.connect import is_configured
from moorage.placement.client.probe import PlacementHealth, probe
from moorage.placement.microversions import Microversion

CHECK_FAILED = 255
"""As oslo.upgradecheck leaves when it could not look, so that no result is mistaken for this."""
_MOST_NAMES = 5


class Checks(upgradecheck.UpgradeCommands):
    """Each check looks at one thing that has kept an upgrade from working, and says what to do about it."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        conf.register_opt(cfg.StrOpt("transport_url", secret=True))

    def database(self) -> upgradecheck.Result:
        connected = engine.from_conf(self._conf)
        try:
            found = schema_fit.look(connected)
            unbuilt = large_indexes.missing(connected, large_indexes.wanted(found.found or ""))
        except sa.exc.OperationalError as error:
            return _failure(f"The database can't be reached: {error.orig}")
        if not found.may_run:
            return _failure(f"The schema {found.sentence}.")
        if found.fit is Fit.NEWER or found.found != found.newest:
            return upgradecheck.Result(upgradecheck.Code.WARNING, f"The schema {found.sentence}.")
        if unbuilt:
            return upgradecheck.Result(
                upgradecheck.Code.WARNING, f"Indexes are still to be built: {', '.join(unbuilt)}: {SYNC}."
            )
        return upgradecheck.Result(upgradecheck.Code.SUCCESS)

    def usage_counters(self) -> upgradecheck.Result:
        """Claims trust the counter in the inventory row; it must equal what the allocations add up to."""
        connected = engine.from_conf(self._conf)
        try:
            wrong = _wrong_counters(connected)
        except sa.exc.OperationalError as error:
            return _failure(f"The database can't be reached: {error.orig}")
        if wrong:
            return _failure(f"{wrong} inventories have a usage counter that differs from their allocations.")
        return upgradecheck.Result(upgradecheck.Code.SUCCESS)

    def placement(self) -> upgradecheck.Result:
        """The service that the pieces of a deployment share; `moorage up` has one of its own."""
        if not is_configured(self._conf) and not self._conf.transport_url:
            return upgradecheck.Result(
                upgradecheck.Code.SUCCESS, "[placement_client] is not set: right for `moorage up` only."
            )
        found = probe(self._conf)
        if found.version is not None and found.version < Microversion.CANDIDATES_IN_ONE_TREE:
            return _failure(
                f"Placement speaks version {text(found.version)}, this release needs "
                f"{text(Microversion.CANDIDATES_IN_ONE_TREE)}: upgrade Placement first."
            )
        if found.health is PlacementHealth.READY:
            return upgradecheck.Result(upgradecheck.Code.SUCCESS)
        if self._conf.placement.required:
            return _failure(f"{found.sentence}.")
        return upgradecheck.Result(upgradecheck.Code.WARNING, f"{found.sentence}.")

    def network(self) -> upgradecheck.Result:
        """Conductors make and bind ports, so they need to get at the network service."""
        found = network_probe.probe(self._conf)
        if found.health is network_probe.NetworkHealth.READY:
            return upgradecheck.Result(upgradecheck.Code.SUCCESS)
        senseless = found.health is network_probe.NetworkHealth.MISCONFIGURED
        if senseless or self._conf.network.required_on_conductor:
            return _failure(f"{found.sentence}.")
        missing = found.health is network_probe.NetworkHealth.MISSING
        meanwhile = "agents make and bind ports" if missing else "boots wait"
        return upgradecheck.Result(
            upgradecheck.Code.WARNING,
            f"{found.sentence}. Conductors start, but {meanwhile}; the next release sets "
            "[network] required_on_conductor, and they will not start.",
        )

    def limits(self) -> upgradecheck.Result:
        """Where Keystone's limits hold, it has to show them to us, and to have those that are needed."""
        try:
            found = unified.connect(self._conf)
            registered = {} if found is None else found.keystone.registered()
        except (ConfigError, LimitsUnavailableError) as error:
            return _failure(f"{error}.")
        missing = [] if found is None else found.missing.lacking(registered)
        if missing:
            return upgradecheck.Result(
                upgradecheck.Code.WARNING,
                f"No limit is registered in Keystone for {', '.join(missing)}, so nobody gets any: "
                "`openstack registered limit create`.",
            )
        return upgradecheck.Result(upgradecheck.Code.SUCCESS)

    def early_ports(self) -> upgradecheck.Result:
        """Ports are made before scheduling once no live agent would make them a second time."""
        return self._agents_know(AgentVersion.EARLY_PORTS, "agents make ports, after scheduling")

    def binding(self) -> upgradecheck.Result:
        return self._agents_know(AgentVersion.BOUND_PORTS, "agents bind ports")

    def _agents_know(self, needed: AgentVersion, meanwhile: str) -> upgradecheck.Result:
        if self._conf.network.provider != "neutron":
            return upgradecheck.Result(upgradecheck.Code.SUCCESS)
        try:
            old = _older_agents(engine.from_conf(self._conf), needed, self._conf.compute.service_down_time)
        except sa.exc.OperationalError as error:
            return _failure(f"The database can't be reached: {error.orig}")
        if not old:
            return upgradecheck.Result(upgradecheck.Code.SUCCESS)
        return upgradecheck.Result(
            upgradecheck.Code.WARNING,
            f"Until they are upgraded to version {needed}, {meanwhile}: {len(old)} agents, "
            f"of {', '.join(old[:_MOST_NAMES])}{', …' if len(old) > _MOST_NAMES else ''}.",
        )

    _upgrade_checks = (
        ("Database schema", database),
        ("Usage counters", usage_counters),
        ("Placement", placement),
        ("Network", network),
        ("Limits", limits),
        ("Early port creation", early_ports),
        ("Port binding in conductors", binding),
    )


def _wrong_counters(connected: Engine) -> int:
    """Plain SQL, because a check must also run on the data of the release before."""
    statement = sa.text(
        "SELECT count(*) FROM inventories i WHERE i.used != ("
        "SELECT coalesce(sum(a.used), 0) FROM allocations a"
        " WHERE a.provider_id = i.provider_id AND a.class_id = i.class_id)"
    )
    if not sa.inspect(connected).has_table("inventories"):
        return 0
    with connected.connect() as connection:
        return int(connection.execute(statement).scalar_one())


def _older_agents(connected: Engine, needed: AgentVersion, down_after: int) -> list[str]:
    """The hosts of agents that live and know less."""
    if not sa.inspect(connected).has_table("services"):
        return []
    query = sa.select(services.c.host).where(
        services.c.binary == AGENT_BINARY,
        services.c.version < int(needed),
        liveness.is_up(timedelta(seconds=down_after)),
    )
    with connected.connect() as connection:
        return list(connection.execute(query.order_by(by_character(services.c.host))).scalars())


def _failure(sentence: str) -> upgradecheck.Result:
    return upgradecheck.Result(upgradecheck.Code.FAILURE, sentence)


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        print(f"moorage-status {release()}")
        return
    conf = cfg.ConfigOpts()
    for group, options in settings.list_opts():
        conf.register_opts(options, group=group)
    try:
        code = upgradecheck.main(conf, "moorage", Checks(conf), sys.argv[1:], settings.files(None))
    except cfg.Error as error:
        print(f"error: {error}", file=sys.stderr)
        code = CHECK_FAILED
    sys.exit(code)
