"""A picture of a screen is held against its text."""

from __future__ import annotations

from tests.support.text_screen import COLUMNS, ROWS, shows

TEXT = "hello, hello".ljust(COLUMNS * ROWS)
PICTURE = [f"ink of {character}" for character in TEXT]


def test_a_picture_shows_its_text_whatever_the_cursor_covers() -> None:
    assert shows(PICTURE, TEXT)
    assert shows([*PICTURE[:-1], "cursor"], TEXT)


def test_a_picture_of_another_text_does_not() -> None:
    assert not shows(PICTURE, "hullo, hello".ljust(COLUMNS * ROWS))
    assert not shows([*PICTURE[:-2], "cursor", "cursor"], TEXT)


def test_a_blank_screen_shows_no_text() -> None:
    assert not shows(["nothing"] * len(TEXT), TEXT)
    assert not shows([], TEXT)
