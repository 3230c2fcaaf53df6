"""Keystone's unified limits in the place of our own: read from there, kept for seconds, counted here."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from oslo_config import cfg
from sqlalchemy.engine import Connection

from moorage.compute.errors import UnavailableError
from moorage.compute.quotas.keystone_limits import KeystoneLimits, LimitsUnavailableError
from moorage.compute.quotas.limits import EVERYBODY
from moorage.compute.quotas.options import UNIFIED
from moorage.compute.quotas.overruns import UNIFIED_NAMES, UnifiedBounds
from moorage.compute.quotas.quotas import UNLIMITED, Limits

LOG = logging.getLogger(__name__)
_OF_PROJECTS = frozenset({"instances", "cores", "ram"})
"""All others are bounds of single requests, users or groups: what is registered holds for all projects."""
_MOST_KEPT = 10_000
_LOCKS = 64


@dataclass(frozen=True)
class MissingLimits:
    """What holds for resources that nobody registered a limit for, by the reference's two options."""

    strategy: str = "require"
    resources: frozenset[str] = frozenset({"servers"})

    def bound(self, name: str) -> int:
        """Of a resource as Keystone calls it."""
        listed = name in self.resources
        return 0 if listed == (self.strategy == "require") else UNLIMITED

    def lacking(self, registered: Collection[str]) -> list[str]:
        """Of which nobody gets any, because no limit is registered."""
        known = {*UNIFIED_NAMES.values(), *(self.resources if self.strategy == "require" else ())}
        return sorted(name for name in known if name not in registered and self.bound(name) == 0)

    @property
    def of_classes(self) -> int:
        """Of resource classes that are not in the list."""
        return UNLIMITED if self.strategy == "require" else 0


@dataclass(frozen=True)
class _Told:
    """What Keystone said of one project."""

    registered: Mapping[str, int]
    own: Mapping[str, int]
    at: float


@dataclass
class UnifiedLimits:
    keystone: KeystoneLimits
    missing: MissingLimits = field(default_factory=MissingLimits)
    seconds: float = 10.0
    """For which an answer is good."""

    are_ours = False

    def __post_init__(self) -> None:
        self._told: dict[str, _Told] = {}
        self._turns = [threading.Lock() for _ in range(_LOCKS)]
        self._failed_at = float("-inf")

    def fetch(self, project_id: str) -> None:
        """One request asks for all that come meanwhile: they share the answer, and the failure."""
        began = time.monotonic()
        if self._is_fresh(project_id):
            return
        with self._turns[hash(project_id) % _LOCKS]:
            if self._is_fresh(project_id):
                return
            if self._failed_at >= began:
                raise _unavailable()
            self._ask(project_id)

    def in_force(self, connection: Connection, project_id: str, user_id: str) -> tuple[Limits, Limits]:
        """Users have no limits of their own."""
        told = self._of(project_id)
        bounds = {name: self._bound(told, name) for name in UNIFIED_NAMES}
        for name in {*told.registered, *told.own, *self.missing.resources} - set(UNIFIED_NAMES.values()):
            bounds[name] = told.own.get(name, told.registered.get(name, self.missing.bound(name)))
        return UnifiedBounds(project_id, bounds, self.missing.of_classes), {}

    def _bound(self, told: _Told, name: str) -> int:
        known = UNIFIED_NAMES[name]
        bound = told.registered.get(known, self.missing.bound(known))
        return told.own.get(known, bound) if name in _OF_PROJECTS else bound

    def shown(self, connection: Connection, project_id: str, user_id: str | None) -> Limits:
        """What nobody registered a limit for is shown as 0, as the reference does."""
        told = self._of(project_id)
        return {
            name: told.own.get(known, told.registered.get(known, 0))
            if name in _OF_PROJECTS
            else told.registered.get(known, 0)
            for name, known in UNIFIED_NAMES.items()
        }

    def shown_of_class(self, connection: Connection, name: str) -> Limits:
        """There is one class: what is registered."""
        registered = self._of(EVERYBODY).registered
        return {ours: registered.get(known, 0) for ours, known in UNIFIED_NAMES.items()}

    def _of(self, project_id: str) -> _Told:
        """What was fetched before the transaction began, though it may be too old for the next one by now."""
        if project_id not in self._told:
            self.fetch(project_id)
        return self._told[project_id]

    def _is_fresh(self, project_id: str) -> bool:
        told = self._told.get(project_id)
        return told is not None and time.monotonic() - told.at < self.seconds

    def _ask(self, project_id: str) -> None:
        asked_at = time.monotonic()
        try:
            registered = self.keystone.registered()
            own = self.keystone.of_project(project_id) if project_id != EVERYBODY else {}
        except LimitsUnavailableError as error:
            LOG.warning("the limits of project %s are not known: %s", project_id, error)
            self._failed_at = time.monotonic()
            raise _unavailable() from error
        if len(self._told) > _MOST_KEPT:
            self._told = {}
        self._told[project_id] = _Told(registered, own, asked_at)


def _unavailable() -> UnavailableError:
    return UnavailableError("The identity service does not tell the limits of the project. Try again later.")


def connect(conf: cfg.ConfigOpts) -> UnifiedLimits | None:
    """None unless `[quota] driver` says so; nothing is sent yet."""
    if conf.quota.driver != UNIFIED:
        return None
    missing = MissingLimits(
        conf.quota.unified_limits_resource_strategy, frozenset(conf.quota.unified_limits_resource_list)
    )
    return UnifiedLimits(KeystoneLimits.from_conf(conf), missing, conf.quota.unified_limits_cache_seconds)
