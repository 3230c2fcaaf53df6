"""URLs of consoles: who gets one, what the API says of it, and until when it is good."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.consoles import console_tokens
from tests.functional.consoles.conftest import Guests, Make, sentence
from tests.support.processes import wait_until


def asked(cloud: Guests, uuid: str, protocol: str, kind: str, version: str = "2.96") -> Any:
    body = {"remote_console": {"protocol": protocol, "type": kind}}
    return cloud.call("POST", f"/servers/{uuid}/remote-consoles", body, version)


def opened(cloud: Guests, uuid: str) -> str:
    """The token of a new serial console."""
    answer = asked(cloud, uuid, "serial", "serial")
    assert answer.status_code == 200, answer.text
    return token_of(answer.json["remote_console"]["url"])


def token_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["token"][0]


def shown(cloud: Guests, token: str, version: str = "2.96") -> Any:
    return cloud.call("GET", f"/os-console-auth-tokens/{token}", version=version)


def test_a_url_of_a_serial_console_and_what_its_token_is_good_for(guests: Make) -> None:
    cloud = guests(**{"consoles.base_url": "https://consoles.example.org/there"})
    uuid = cloud.running()
    answer = asked(cloud, uuid, "serial", "serial").json["remote_console"]
    assert (answer["protocol"], answer["type"]) == ("serial", "serial")
    assert answer["url"].startswith("wss://consoles.example.org/there/?token=")
    console = shown(cloud, token_of(answer["url"])).json["console"]
    assert (console["instance_uuid"], console["host"]) == (uuid, "127.0.0.1")
    assert console["internal_access_path"] is None
    assert console["port"] > 0
    old = cloud.act(uuid, "os-getSerialConsole", {"type": "serial"}, version="2.5").json["console"]
    assert (old["type"], old["url"].partition("=")[0]) == ("serial", answer["url"].partition("=")[0])
    assert cloud.act(uuid, "os-getSerialConsole", {"type": "serial"}, version="2.6").status_code == 404
    assert cloud.act(uuid, "os-getRDPConsole", {"type": "rdp-html5"}, version="2.5").status_code == 410
    assert cloud.act(uuid, "os-getRDPConsole", {"type": "rdp-html5"}, version="2.6").status_code == 404


def test_only_the_hash_of_a_token_is_stored(guests: Make) -> None:
    cloud = guests()
    token = opened(cloud, cloud.running())
    with cloud.yard.placement.database.read() as connection:
        [row] = connection.execute(sa.select(console_tokens)).mappings()
    assert all(token not in str(value) for value in row.values())


NONE_SUCH = (
    ("vnc", "novnc", "2.6", "Unavailable console type novnc."),  # this driver has none
    ("vnc", "xvpvnc", "2.6", "Invalid console type xvpvnc"),
    ("serial", "novnc", "2.6", "Invalid console type novnc"),
    ("spice", "spice-html5", "2.6", "Unavailable console type spice-html5."),
    ("mks", "webmks", "2.8", "Unavailable console type webmks."),
    ("rdp", "rdp-html5", "2.6", "Unavailable console type rdp."),
    ("mks", "webmks", "2.7", "Invalid input"),
    ("telnet", "serial", "2.96", "Invalid input"),
)


def test_consoles_that_there_are_not(guests: Make) -> None:
    cloud = guests()
    uuid = cloud.running()
    for protocol, kind, version, told in NONE_SUCH:
        assert told in sentence(asked(cloud, uuid, protocol, kind, version), 400)


def test_a_server_that_does_not_run_has_no_console(guests: Make) -> None:
    cloud = guests()
    uuid = cloud.running()
    assert cloud.act(uuid, "os-stop", None).status_code == 202
    cloud.yard.await_status([uuid], "SHUTOFF")
    told = sentence(asked(cloud, uuid, "serial", "serial"), 409)
    assert told == f"Cannot 'get_serial_console' instance {uuid} while it is in vm_state stopped"


def test_tokens_are_unknown_before_2_31_and_to_all_but_administrators(guests: Make) -> None:
    cloud = guests()
    token = opened(cloud, cloud.running())
    assert shown(cloud, token, "2.30").status_code == 400
    assert sentence(shown(cloud, "nonsense"), 404) == "Token not found"
    headers = {"x-auth-token": "alice:red", "x-roles": "member,reader"}
    answer = cloud.yard.api.simulate_get(f"/v2.1/os-console-auth-tokens/{token}", headers=headers)
    assert answer.status_code == 403


def test_a_token_ends_with_its_time_and_is_forgotten_then(guests: Make) -> None:
    cloud = guests()
    uuid = cloud.running()
    token = opened(cloud, uuid)
    expire(cloud)
    assert shown(cloud, token).status_code == 404
    opened(cloud, uuid)
    assert count(cloud) == 1
    expire(cloud, used_at=utcnow())  # somebody looks at it
    opened(cloud, uuid)
    assert count(cloud) == 2


def test_a_token_ends_with_its_server(guests: Make) -> None:
    cloud = guests()
    uuid = cloud.running()
    token = opened(cloud, uuid)
    assert shown(cloud, token).status_code == 200
    cloud.yard.delete(uuid)
    cloud.yard.await_gone([uuid])
    assert shown(cloud, token).status_code == 404


def test_a_token_ends_when_its_server_moves(guests: Make) -> None:
    cloud = guests(hosts=2)
    uuid = cloud.running()
    token, before = opened(cloud, uuid), cloud.host(uuid)
    live = {"host": None, "block_migration": "auto"}
    assert cloud.act(uuid, "os-migrateLive", live, version="2.30").status_code == 202
    wait_until(lambda: cloud.host(uuid) != before, "the move", 30)
    assert shown(cloud, token).status_code == 404
    cloud.yard.await_status([uuid], "ACTIVE")
    assert shown(cloud, opened(cloud, uuid)).status_code == 200


def expire(cloud: Guests, **columns: Any) -> None:
    with cloud.yard.placement.database.write() as connection:
        connection.execute(sa.update(console_tokens).values(expires_at=utcnow(), **columns))


def count(cloud: Guests) -> int:
    with cloud.yard.placement.database.read() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(console_tokens)).scalar_one())
