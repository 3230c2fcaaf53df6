"""Applications of one table share its router, and nothing else."""

from __future__ import annotations

import falcon.testing
from oslo_config import cfg

from moorage.http.app import Application
from moorage.http.call import Call
from moorage.http.errors import GuidelineStyle
from moorage.http.policy import Authorizer
from moorage.http.reply import Reply
from moorage.http.route import Endpoint, Route
from moorage.http.version import VersionRange


def show(service: str, _call: Call) -> Reply:
    """Who serves."""
    return Reply(body={"service": service})


ROUTES: tuple[Route[str], ...] = (Route("/", {"GET": Endpoint(show)}),)


def client(service: str, *, lenient: bool) -> falcon.testing.TestClient:
    conf = cfg.ConfigOpts()
    conf([])
    application = Application(
        service,
        ROUTES,
        VersionRange("test", (1, 0), (1, 1)),
        Authorizer(conf, []),
        style=GuidelineStyle(undefined_code="undefined", codes_since=(1, 0)),
        longest_body=100,
        lenient=lenient,
    )
    return falcon.testing.TestClient(application.wsgi)


def test_each_answers_for_its_own_service() -> None:
    one, other = client("one", lenient=False), client("other", lenient=False)
    for asked, service in ((one, "one"), (other, "other"), (one, "one")):
        assert asked.simulate_get("/").json == {"service": service}


def test_manners_are_those_of_each() -> None:
    strict, lenient = client("s", lenient=False), client("l", lenient=True)
    for _ in range(2):
        assert strict.simulate_put("/").status_code == 405
        assert lenient.simulate_put("/").status_code == 404
