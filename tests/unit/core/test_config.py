"""What is wrong in a configuration is told when it is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg

from moorage.core import config
from moorage.core.config import ConfigError

OPTIONS: config.Options = {"boats": [cfg.IntOpt("most", default=3), cfg.FloatOpt("draught", default=1.5)]}


def read(directory: Path, text: str) -> cfg.ConfigOpts:
    file = directory / "moorage.conf"
    file.write_text(text)
    return config.read([str(file)], [OPTIONS])


def test_values_are_those_of_the_file_or_the_defaults(tmp_path: Path) -> None:
    conf = read(tmp_path, "[boats]\nmost = 7\n")
    assert (conf.boats.most, conf.boats.draught) == (7, 1.5)


def test_a_value_of_the_wrong_kind_is_refused_before_anybody_needs_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Value for option most .*moorage\.conf.* invalid literal"):
        read(tmp_path, "[boats]\nmost = 7.0\n")
