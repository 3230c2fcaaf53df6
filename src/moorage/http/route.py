"""The table of routes: each line says all that holds for a method of a path before its handler runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from moorage.core.microversions import Version
from moorage.http.call import Call
from moorage.http.policy import Target
from moorage.http.reply import Reply
from moorage.http.schema import AnySchema

S = TypeVar("S")
Handler = Callable[[S, Call], Reply]
ROUTE = "moorage.route"
"""In the WSGI environment, the path of the route that a request has come to."""


def nobodys(_call: Call) -> Target:
    """The target of a rule about what belongs to the cloud and not to a project."""
    return {}


@dataclass(frozen=True, eq=False)
class Endpoint(Generic[S]):
    """One method of one path."""

    handler: Handler[S]
    policy: str | None = None
    """Name of the rule that the caller must pass; None lets everybody in."""
    check: str = "!"
    """The rule's default; nobody, unless a service says otherwise."""
    target: Callable[[Call], Target] | None = nobodys
    """Whose thing the rule is asked about; None where only the handler finds out, and says so by `admit`."""
    since: Version = (0, 0)
    before_that: int = 404
    """The status below the version `since`."""
    dropped: Version | None = None
    """The first version that no longer has it: 404."""
    body: AnySchema | None = None
    """What the body must look like; a route that has one takes JSON and nothing else."""
    query: AnySchema | None = None
    """What the query string may have."""
    every_value: bool = False
    """Each value of a repeated parameter has to fit `query`, also one that another overrules."""
    no_query_since: Version | None = None
    """The first version at which GET takes no parameters, where `query` names none."""
    takes_json: bool = False
    """For a body that its handler checks by itself."""
    gives_json: bool = False

    @property
    def reads_json(self) -> bool:
        return self.takes_json or self.body is not None

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or self.handler.__name__).strip().splitlines()[0]


@dataclass(frozen=True, eq=False)
class Route(Generic[S]):
    """One is only itself, so that what is made of a table can be kept for it."""

    path: str
    methods: Mapping[str, Endpoint[S]] = field(default_factory=dict)
