"""The operator's options become the scheduler's settings."""

from __future__ import annotations

from dataclasses import fields, replace

from oslo_config import cfg

from moorage.conductor.options import OPTIONS as CONDUCTOR_OPTIONS
from moorage.core import config
from moorage.scheduler.options import OPTIONS, settings
from moorage.scheduler.settings import SchedulerSettings

AREAS = (CONDUCTOR_OPTIONS, OPTIONS)


def test_defaults_are_the_same_on_both_sides() -> None:
    assert settings(config.read([], AREAS)) == SchedulerSettings()


def test_every_option_is_heeded() -> None:
    given: dict[str, object] = {
        f"filter_scheduler.{option.name}": number
        for number, option in enumerate(OPTIONS["filter_scheduler"], 5)
    }
    given |= {
        f"scheduler.{option.name}": not option.default
        for option in CONDUCTOR_OPTIONS["scheduler"]
        if isinstance(option, cfg.BoolOpt)
    }
    found = settings(config.read([], AREAS, given))
    unheeded = [
        field.name for field in fields(SchedulerSettings) if getattr(found, field.name) == field.default
    ]
    assert unheeded == ["max_candidates", "max_attempts"]
    assert replace(found, max_servers_per_node=0).filters() != found.filters()
