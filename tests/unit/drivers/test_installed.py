"""Drivers are found by name; who names one that is not there hears which are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stevedore.extension import ExtensionManager

from moorage.core.config import ConfigError
from moorage.drivers import installed


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution that brings drivers none of which can be used."""
    metadata = tmp_path / "others-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[moorage.drivers]\nbroken = others:PLUGIN\nodd = others_odd:PLUGIN\nfake = others_odd:FAKE\n"
    )
    (tmp_path / "others.py").write_text("import a_module_that_nobody_has\n")
    (tmp_path / "others_odd.py").write_text(
        "from moorage.drivers.fake.plugin import PLUGIN as FAKE\nPLUGIN = FAKE.load\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(ExtensionManager, "ENTRY_POINT_CACHE", {})
    return tmp_path


def test_ours_are_found() -> None:
    assert set(installed.find("fake").options) == {"fake"}
    assert set(installed.find("ironic").options) == {"ironic"}


def test_the_options_of_all_are_known() -> None:
    assert {group for found in installed.options() for group in found} >= {"fake", "ironic"}


def test_one_that_is_not_installed_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match="there is no driver 'libvert'; installed are: fake, ironic"):
        installed.find("libvert")


def test_one_that_can_not_be_loaded_says_why(package: Path) -> None:
    with pytest.raises(ConfigError, match=r"'broken' can't be loaded: .*a_module_that_nobody_has"):
        installed.find("broken")
    with pytest.raises(ConfigError, match="'odd' can't be loaded: others_odd:PLUGIN is no Plugin"):
        installed.find("odd")
    with pytest.raises(ConfigError, match="'fake' can't be loaded: several packages bring one of that name"):
        installed.find("fake")


def test_it_is_no_trouble_of_the_others(package: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert set(installed.find("ironic").options) == {"ironic"}
    assert {"ironic"} <= {group for found in installed.options() for group in found}
    assert "driver 'broken' can't be loaded" in caplog.text
    assert "others" not in sys.modules
