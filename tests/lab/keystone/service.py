"""Start Keystone, and fill it with the people and the catalogue that a test needs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.lab.keystone.pristine import KEYSTONE, pristine_state
from tests.lab.keystone.settings import ADMIN_PASSWORD, PAGE, REGION, settings
from tests.lab.wsgi import serve
from tests.support.processes import Service, free_port
from tests.support.profiles import ini

DOMAIN = "default"
ROLES = ("admin", "member", "reader", "service")


@dataclass(frozen=True)
class Person:
    """Somebody with a role, or several, in one project."""

    name: str
    password: str
    project: str
    project_id: str

    def auth(self, url: str) -> dict[str, str]:
        """What keystoneauth's plug-in `password` needs, in a clouds.yaml or a configuration file."""
        return {
            "auth_url": url,
            "username": self.name,
            "password": self.password,
            "project_name": self.project,
            "user_domain_id": DOMAIN,
            "project_domain_id": DOMAIN,
        }


@dataclass
class Keystone:
    """A running Keystone, asked as its administrator. It can be stopped and started again."""

    directory: Path
    port: int
    service: Service
    roles: dict[str, str] = field(default_factory=dict)
    projects: dict[str, str] = field(default_factory=dict)
    _admin_token: str = ""

    @property
    def url(self) -> str:
        return f"{self.service.url}/v3"

    @property
    def admin(self) -> Person:
        return Person("admin", ADMIN_PASSWORD, "admin", self.projects["admin"])

    def add_project(self, name: str) -> str:
        """Its id; one that is there already stays."""
        if name not in self.projects:
            self.projects[name] = self._post("projects", "project", name=name, domain_id=DOMAIN)["id"]
        return self.projects[name]

    def add_person(self, name: str, role: str, project: str, *more_roles: str) -> Person:
        password = f"{name}-secret"
        self.add_project(project)
        user = self._post("users", "user", name=name, password=password, domain_id=DOMAIN)["id"]
        for each in (role, *more_roles):
            grant = f"projects/{self.projects[project]}/users/{user}/roles/{self.roles[each]}"
            self._ask("PUT", grant)
        return Person(name, password, project, self.projects[project])

    def add_role(self, name: str) -> None:
        self.roles[name] = self._post("roles", "role", name=name)["id"]

    def add_service(self, kind: str, name: str, url: str) -> None:
        """Put a service into the catalogue."""
        made = self._post("services", "service", type=kind, name=name)
        for interface in ("public", "internal", "admin"):
            self._post(
                *("endpoints", "endpoint"),
                service_id=made["id"],
                interface=interface,
                url=url,
                region_id=REGION,
            )

    def register_limits(self, kind: str, limits: Mapping[str, int]) -> None:
        """For the service of this kind: what holds for all projects."""
        self._limit(
            "registered_limits",
            kind,
            [{"resource_name": name, "default_limit": limit} for name, limit in limits.items()],
        )

    def limit_project(self, kind: str, project_id: str, limits: Mapping[str, int]) -> None:
        """What holds for one project in the place of that."""
        self._limit(
            "limits",
            kind,
            [
                {"project_id": project_id, "resource_name": name, "resource_limit": limit}
                for name, limit in limits.items()
            ],
        )

    def _limit(self, collection: str, kind: str, entries: list[dict[str, Any]]) -> None:
        (service,) = self._ask("GET", f"services?type={kind}")["services"]
        whose = {"service_id": service["id"], "region_id": REGION}
        self._ask("POST", collection, {collection: [{**whose, **entry} for entry in entries]})

    def token(self, person: Person) -> str:
        """A new token, scoped to the person's project."""
        return self._token(person, {"project": {"name": person.project, "domain": {"id": DOMAIN}}})

    def system_token(self, person: Person) -> str:
        """One that is scoped to the whole system, where the person must have a role, too."""
        return self._token(person, {"system": {"all": True}})

    def _token(self, person: Person, scope: dict[str, Any]) -> str:
        user = {"name": person.name, "password": person.password, "domain": {"id": DOMAIN}}
        body = {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}
        answer = requests.post(f"{self.url}/auth/tokens", json={"auth": body}, timeout=30)
        answer.raise_for_status()
        return answer.headers["X-Subject-Token"]

    def stop(self) -> None:
        """Not politely, which takes as long as a start."""
        self.service.kill()

    def start_again(self) -> None:
        self.service = _serve(self.directory, self.port)

    def learn_names(self) -> None:
        """What `keystone-manage bootstrap` made; one by one, since a list is cut off."""
        self.roles = {name: self._id("roles", name) for name in ROLES}
        self.projects = {"admin": self._id("projects", "admin")}

    def _id(self, collection: str, name: str) -> str:
        (found,) = self._ask("GET", f"{collection}?name={name}")[collection]
        return str(found["id"])

    def _post(self, path: str, noun: str, **values: str) -> dict[str, Any]:
        made: dict[str, Any] = self._ask("POST", path, {noun: values})[noun]
        return made

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """With one token for all questions: to make one takes Keystone longer than most answers."""
        self._admin_token = self._admin_token or self.token(Person("admin", ADMIN_PASSWORD, "admin", ""))
        headers = {"X-Auth-Token": self._admin_token}
        answer = requests.request(method, f"{self.url}/{path}", json=body, headers=headers, timeout=30)
        answer.raise_for_status()
        return answer.json() if answer.content else None


def start(directory: Path, page: str = PAGE) -> Keystone:
    """A Keystone of its own for whoever asks, on a copy of the pristine state."""
    shutil.copytree(pristine_state(), directory, dirs_exist_ok=True)
    (directory / "keystone.conf").write_text(ini(settings(directory, page)))
    port = free_port()
    keystone = Keystone(directory, port, _serve(directory, port))
    try:
        keystone.learn_names()
        keystone.add_service("identity", "keystone", keystone.url)
    except BaseException:
        keystone.stop()
        raise
    return keystone


def _serve(directory: Path, port: int) -> Service:
    """One request at a time: SQLite turns away whoever writes beside another."""
    variables = {"OS_KEYSTONE_CONFIG_DIR": str(directory)}
    return serve(KEYSTONE, "keystone.wsgi.api:application", directory, port, variables, path="/v3", threads=1)
