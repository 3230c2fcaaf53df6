"""Regular expressions of users: what they cost is bounded, and both databases take them to mean the same.

Python's engine and PostgreSQL's back-references may take for ever to say no. RE2 takes time in proportion to
the text; what it refuses (back-references, looking around, what grows too large) we refuse. SQLite asks RE2
itself. PostgreSQL gets the same expression in its own dialect, with all that depends on its locale spelt out.
"""

from __future__ import annotations

import re
import string
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2
import sqlalchemy as sa
from sqlalchemy.engine import Connection

_LONGEST = 1024
_MOST_REPEATS = 255
"""PostgreSQL's bound."""
_MEMORY = 256 * 1024
"""Of a compiled expression: some ten thousand steps."""

Range = tuple[int, int]

_LAST = sys.maxunicode
_DIGITS: list[Range] = [(48, 57)]
_UPPER: list[Range] = [(65, 90)]
_LOWER: list[Range] = [(97, 122)]
_WORD = [*_DIGITS, *_UPPER, (95, 95), *_LOWER]
_PUNCTUATION: list[Range] = [(33, 47), (58, 64), (91, 96), (123, 126)]
_PERL: dict[str, list[Range]] = {"d": _DIGITS, "w": _WORD, "s": [(9, 10), (12, 13), (32, 32)]}
_POSIX: dict[str, list[Range]] = {
    "alnum": [*_DIGITS, *_UPPER, *_LOWER],
    "alpha": [*_UPPER, *_LOWER],
    "ascii": [(1, 127)],
    "blank": [(9, 9), (32, 32)],
    "cntrl": [(1, 31), (127, 127)],
    "digit": _DIGITS,
    "graph": [(33, 126)],
    "lower": _LOWER,
    "print": [(32, 126)],
    "punct": _PUNCTUATION,
    "space": [(9, 13), (32, 32)],
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": [*_DIGITS, (65, 70), (97, 102)],
}
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_INSIDE = "[A-Za-z0-9_]"
_ASSERTIONS = {
    "A": r"\A",
    "z": r"\Z",
    "b": f"(?:(?<={_INSIDE})(?!{_INSIDE})|(?<!{_INSIDE})(?={_INSIDE}))",
}
"""PostgreSQL has its own sign for the edge of a word, but knows it by its locale. There is no `\\B`:
RE2 finds it inside of characters, too."""

_REPEAT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}\??")
_GROUP = re.compile(r"\((?:\?(?::|P?<[A-Za-z0-9_]+>))?")
_HEXADECIMAL = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
_OCTAL = re.compile(r"[0-7]{1,3}")
_NAMED = re.compile(r"\[:([a-z]+):\]")


class PatternError(ValueError):
    """Not a regular expression, or not one that we can take."""


@dataclass(frozen=True)
class Pattern:
    """A regular expression that was found good."""

    text: str
    postgresql: str
    """The same in PostgreSQL's dialect."""


def parse(text: str) -> Pattern:
    if len(text) > _LONGEST:
        raise PatternError(f"a regular expression may have {_LONGEST} characters")
    compiled(text)
    return Pattern(text, _Translation(text).result())


@lru_cache(maxsize=256)
def compiled(text: str) -> Any:
    """As RE2 understands it; raises `PatternError`."""
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_capture = True
    options.dot_nl = True  # as PostgreSQL has it
    try:
        return re2.compile(text, options)
    except (re2.error, UnicodeError) as error:
        raise PatternError(str(error)) from error


def fits(connection: Connection, text: sa.ColumnElement[Any], pattern: Pattern) -> sa.ColumnElement[bool]:
    """Whether somewhere in `text` there is what `pattern` describes."""
    dialect = pattern.postgresql if connection.dialect.name == "postgresql" else pattern.text
    return text.regexp_match(dialect)


def search(text: str, value: str | None) -> bool | None:
    """SQLite's REGEXP."""
    return None if value is None else compiled(text).search(value) is not None


class _Translation:
    """One walk through an expression that RE2 takes; what PostgreSQL could not be told is refused."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._done: list[str] = []
        self._asserted = False
        """Whether the last part was an assertion, which PostgreSQL does not repeat."""

    def result(self) -> str:
        if self._text.startswith("(?i)"):
            self._done.append("(?i)")
            self._at = 4
        while self._at < len(self._text):
            self._step()
        return "".join(self._done)

    def _step(self) -> None:
        char = self._text[self._at]
        if char == "\\":
            self._escape()
        elif char == "[":
            self._class()
        elif char == "(":
            self._take(_GROUP, "(?:")
        elif char in "*+?":
            self._at += 1
            self._repeat(char)
            if self._text[self._at : self._at + 1] == "?":  # how much it takes is all the same to us
                self._at += 1
        elif char == "{" and (match := _REPEAT.match(self._text, self._at)):
            self._at = match.end()
            if max(int(bound[:9]) for bound in match.group(1, 3) if bound) > _MOST_REPEATS:
                raise PatternError(f"something may be repeated {_MOST_REPEATS} times")
            self._repeat(match[0].removesuffix("?"))
        else:
            self._at += 1
            self._add(char if char in ".^$|)" else _quoted(char), asserted=char in "^$")

    def _add(self, part: str, *, asserted: bool = False) -> None:
        self._done.append(part)
        self._asserted = asserted

    def _repeat(self, how: str) -> None:
        if self._asserted:
            raise PatternError("an assertion can't be repeated")
        self._add(how)

    def _take(self, form: re.Pattern[str], part: str) -> None:
        match = form.match(self._text, self._at)
        assert match is not None
        if self._text[match.end() : match.end() + 1] == "?":
            raise PatternError("flags are taken at the beginning only, and only (?i)")
        self._at = match.end()
        self._add(part)

    def _escape(self) -> None:
        letter = self._text[self._at + 1]
        if letter in _ASSERTIONS:
            self._at += 2
            self._add(_ASSERTIONS[letter], asserted=True)
        elif letter.lower() in _PERL:
            self._at += 2
            self._add(_class_of(_perl(letter), negated=False))
        else:
            self._add(_quoted(chr(self._character())))

    def _character(self) -> int:
        """One character, escaped or not, and past it."""
        if self._text[self._at] != "\\":
            self._at += 1
            return ord(self._text[self._at - 1])
        self._at += 1
        letter = self._text[self._at]
        if letter in _CONTROL:
            self._at += 1
            return _CONTROL[letter]
        if letter in string.punctuation:
            self._at += 1
            return ord(letter)
        if match := _HEXADECIMAL.match(self._text, self._at):
            code = int(match[1] or match[2], 16)
        elif match := _OCTAL.match(self._text, self._at):
            code = int(match[0], 8)
        else:
            raise PatternError(f"\\{letter} is not known")
        if not 0 < code <= _LAST or 0xD800 <= code < 0xE000:
            raise PatternError("a character that no text has")
        self._at = match.end()
        return code

    def _class(self) -> None:
        self._at += 1
        negated = self._text[self._at] == "^"
        self._at += negated
        ranges: list[Range] = []
        first = True
        while first or self._text[self._at] != "]":
            ranges += self._ranges()
            first = False
        self._at += 1
        self._add(_class_of(ranges, negated=negated))

    def _ranges(self) -> list[Range]:
        text = self._text
        if match := _NAMED.match(text, self._at):
            self._at = match.end()
            return _POSIX[match[1]]
        if text.startswith("[:", self._at):
            raise PatternError("a negated class by name")
        if text[self._at] == "\\" and text[self._at + 1].lower() in _PERL:
            self._at += 2
            return _perl(text[self._at - 1])
        low = high = self._character()
        if text[self._at] == "-" and text[self._at + 1] != "]":
            self._at += 1
            high = self._character()
        return [(low, high)]


def _perl(letter: str) -> list[Range]:
    ranges = _PERL[letter.lower()]
    return ranges if letter.islower() else _others(ranges)


def _others(ranges: list[Range]) -> list[Range]:
    """All other characters."""
    others, begin = [], 1
    for low, high in ranges:
        others.append((begin, low - 1))
        begin = high + 1
    return [*others, (begin, _LAST)]


def _class_of(ranges: list[Range], *, negated: bool) -> str:
    parts = (
        _quoted(chr(low)) if low == high else f"{_quoted(chr(low))}-{_quoted(chr(high))}"
        for low, high in ranges
    )
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _quoted(char: str) -> str:
    if char in string.punctuation:
        return f"\\{char}"
    return char if char.isprintable() or ord(char) > 127 else f"\\u{ord(char):04x}"
