"""Which database URLs are taken."""

from __future__ import annotations

import pytest

from moorage.core.config import ConfigError
from moorage.db import engine


@pytest.mark.parametrize("driver", ["postgresql", "postgresql+psycopg", "postgresql+psycopg2"])
def test_postgresql_is_reached_with_our_driver(driver: str) -> None:
    assert engine.connect(f"{driver}://somebody@127.0.0.1/moorage").driver == "psycopg"


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://somebody@127.0.0.1/moorage", "postgres://x@y/z"])
def test_another_database_is_refused_in_a_sentence(url: str) -> None:
    with pytest.raises(ConfigError, match=r"\[database\] connection must be"):
        engine.connect(url)
