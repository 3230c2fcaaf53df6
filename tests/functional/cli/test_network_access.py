"""Conductors and the network service: what they say, and whether they start, when it does not let them in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code

from moorage.cli import settings
from moorage.cli.errors import CommandError
from moorage.cli.processes.network_access import require_network
from moorage.cli.status import Checks
from moorage.db import engine
from moorage.db.database import Database
from moorage.network.connect import connect_agent, connect_conductor
from moorage.network.contract import NetworkAccess
from moorage.network.probe import NetworkHealth, probe
from moorage.placement.client.transport import Response
from tests.support.http_front import serving
from tests.support.processes import free_port
from tests.support.profiles import ini


class Says:
    """A service that has one answer to everything."""

    def __init__(self, status: int, body: bytes = b'{"networks": []}') -> None:
        self._answer = Response(status, body)

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        return self._answer


def configured(directory: Path, endpoint: str | None, *, required: bool = False) -> cfg.ConfigOpts:
    sections = {"network": {"provider": "neutron", "required_on_conductor": str(required)}}
    if endpoint is not None:
        sections["neutron"] = {
            "auth_type": "http_basic",
            "username": "moorage",
            "password": "secret",
            "endpoint": endpoint,
            "endpoint_override": f"{endpoint}/v2.0",
            "timeout": "10",
        }
    path = directory / "moorage.conf"
    path.write_text(ini(sections))
    return settings.read([path])


def test_the_built_in_pools_need_nobody(tmp_path: Path) -> None:
    require_network(settings.read([]))
    assert Checks(settings.read([])).network().code is Code.SUCCESS


def test_one_that_lets_us_in_is_fine(tmp_path: Path) -> None:
    with serving(Says(200)) as endpoint:
        conf = configured(tmp_path, endpoint, required=True)
        require_network(conf)
        assert Checks(conf).network().code is Code.SUCCESS


def test_missing_credentials_are_a_warning_until_they_are_required(tmp_path: Path) -> None:
    conf = configured(tmp_path, None)
    require_network(conf)
    result = Checks(conf).network()
    assert result.code is Code.WARNING
    assert "agents make and bind ports" in str(result.details)
    strict = configured(tmp_path, None, required=True)
    with pytest.raises(CommandError, match=r"\[neutron\] has no credentials"):
        require_network(strict)
    assert Checks(strict).network().code is Code.FAILURE


def test_without_credentials_a_conductor_leaves_ports_to_agents_that_have_some(tmp_path: Path) -> None:
    database = Database(engine.connect(f"sqlite:///{tmp_path / 'moorage.sqlite'}"))
    without = configured(tmp_path, None)
    assert connect_conductor(without, database).reach is NetworkAccess.AGENTS
    assert connect_agent(without) is None
    given = configured(tmp_path, "http://127.0.0.1:9696")
    agents = connect_agent(given)
    assert connect_conductor(given, database).reach is NetworkAccess.ANYONE
    assert agents is not None
    assert agents.reach is NetworkAccess.ANYONE


def test_no_agent_gets_at_the_built_in_pools(tmp_path: Path) -> None:
    database = Database(engine.connect(f"sqlite:///{tmp_path / 'moorage.sqlite'}"))
    assert connect_conductor(settings.read([]), database).reach is NetworkAccess.CONDUCTORS
    assert connect_agent(settings.read([])) is None


def test_credentials_that_make_no_sense_stop_a_conductor_anyhow(tmp_path: Path) -> None:
    path = tmp_path / "moorage.conf"
    path.write_text(ini({"network": {"provider": "neutron"}, "neutron": {"auth_type": "nonsense"}}))
    conf = settings.read([path])
    with pytest.raises(CommandError, match=r"\[neutron\]"):
        require_network(conf)
    assert Checks(conf).network().code is Code.FAILURE


def test_wrong_credentials_are_a_warning_until_they_are_required(tmp_path: Path) -> None:
    with serving(Says(401, b"")) as endpoint:
        conf = configured(tmp_path, endpoint)
        require_network(conf)
        result = Checks(conf).network()
        assert result.code is Code.WARNING
        assert "required_on_conductor" in str(result.details)
        strict = configured(tmp_path, endpoint, required=True)
        with pytest.raises(CommandError, match="Mend"):
            require_network(strict)
        assert Checks(strict).network().code is Code.FAILURE


@pytest.mark.parametrize("required", [False, True])
def test_one_that_is_only_away_keeps_nobody_from_starting(tmp_path: Path, required: bool) -> None:
    conf = configured(tmp_path, f"http://127.0.0.1:{free_port()}", required=required)
    assert probe(conf).health is NetworkHealth.UNREACHABLE
    require_network(conf)
