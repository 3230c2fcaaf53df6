"""Configuration: oslo.config files, read into one object that is passed on, never kept in a global."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oslo_config import cfg

Options = Mapping[str, Sequence[cfg.Opt]]
"""The options of one area, by group."""


class ConfigError(Exception):
    """A configuration that can't be used; its text is meant for the operator."""


def read(
    files: Sequence[str], options: Sequence[Options], overrides: Mapping[str, object] | None = None
) -> cfg.ConfigOpts:
    """Read `files` with the options of the given areas; `overrides` ("group.name") win over the files."""
    conf = cfg.ConfigOpts()
    for area in options:
        for group, opts in area.items():
            conf.register_opts(list(opts), group=group)
    try:
        conf(
            args=[],
            project="moorage",
            prog="moorage",
            default_config_files=list(files),
            default_config_dirs=[],
        )
        for key, value in (overrides or {}).items():
            group, name = key.split(".", 1)
            conf.set_override(name, value, group=group)
        _look_at_all(conf, options)
    except (cfg.Error, ValueError) as error:
        raise ConfigError(str(error)) from error
    return conf


def _look_at_all(conf: cfg.ConfigOpts, options: Sequence[Options]) -> None:
    """A value is judged when it is asked for: ask now, rather than when somebody needs it."""
    for area in options:
        for group, opts in area.items():
            for option in opts:
                _ = conf[group][option.dest]
