"""Regular expressions of users: bounded in cost, and of one meaning on both databases."""

from __future__ import annotations

import os
import time

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from moorage.db import engine, pattern
from moorage.db.pattern import Pattern, PatternError, fits
from tests.conformance.seeds import SEED

EXAMPLES = int(os.environ.get("MOORAGE_PATTERNS") or 300)

NAMES = [
    *("", "web-1", "Web-1", "web-10", "db_2", "a.b", "a+b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "{a}", "a{2}"),
    *("10.0.0.5", "fd00::5", "naïve", "Ωmega", "über-web", "two words", "tab\there", "line\nbreak", "x\\y"),
    *("[brackets]", "(round)", "a|b", "^$", "***", "ab-]c", "9", "_", "café au lait", "🙂"),
]
TABLE = {
    "web": {"web-1", "web-10", "über-web"},
    "^web": {"web-1", "web-10"},
    "^web-1$": {"web-1"},
    "(?i)^web-1$": {"web-1", "Web-1"},
    r"-\d+$": {"web-1", "Web-1", "web-10"},
    r"\bweb\b": {"web-1", "web-10", "über-web"},
    r"^[[:alpha:]]+-[[:digit:]]$": {"web-1", "Web-1"},
    "(a+)+$": {"Ωmega"},
    "^.{1}$": {"9", "_", "🙂"},
    "line.break": {"line\nbreak"},
    r"a\+b": {"a+b"},
    "a{2}": {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"},
    r"a\{2\}": {"a{2}"},
    r"^\w+$": {"db_2", "9", "_"},
    r"\s": {"two words", "tab\there", "line\nbreak", "café au lait"},
    r"[^\w.:\s-]$": {
        "a{2}",
        "{a}",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
        "[brackets]",
        "(round)",
        "^$",
        "***",
        "🙂",
    },
    "[]-]c$": {"ab-]c"},
    r"\x{3a9}|\xfc": {"Ωmega", "über-web"},
    "^$|^9$": {"", "9"},
    r"\A(?:db|Web)[_-]\d\z": {"db_2", "Web-1"},
}
REFUSED = [
    *(r"(a*)*\1", r"(a)\1", "(?=a)", "(?<!a)b", "(", "[a", "a**", "*", "a{1,300}", "(((a{99}){99}){99})"),
    *(
        r"\pL",
        "(?s)a",
        "a(?i)b",
        r"\Qa",
        r"a\Bb",
        "^*",
        "a" * 1025,
        "(" * 5000,
        "a{1,4294967295}",
        r"\x00",
        "\ud800",
    ),
]


def found(url: str, text: str, names: list[str]) -> set[str]:
    connected = engine.connect(url)
    rows = ask(connected, pattern.parse(text), names)
    connected.dispose()
    return rows


def ask(connected: sa.Engine, parsed: Pattern, names: list[str]) -> set[str]:
    listed = sa.union_all(*(sa.select(sa.literal(name, sa.Text).label("name")) for name in names)).subquery()
    with connected.connect() as connection:
        query = sa.select(listed.c.name).where(fits(connection, listed.c.name, parsed))
        return set(connection.execute(query).scalars())


@pytest.mark.parametrize("text", TABLE)
def test_both_databases_find_the_same(module_database_url: str, text: str) -> None:
    assert found(module_database_url, text, NAMES) == TABLE[text]


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: ascii(text[:20]))
def test_what_could_take_for_ever_is_refused(text: str) -> None:
    with pytest.raises(PatternError):
        pattern.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "(a+)+$",
        "(a|a)*$",
        "(.*a){20}$",
        "(a*)*b",
        "((a{15}){15}){4}$",
        "(x+x+)+y",
        "(?i)" + "(a|b|ab)*" * 100,
    ],
)
def test_the_worst_takes_a_moment(module_database_url: str, text: str) -> None:
    begun = time.process_time(), time.monotonic()
    found(module_database_url, text, ["a" * 255 + "!", "x" * 255] * 20)
    assert time.monotonic() - begun[1] < 20
    assert time.process_time() - begun[0] < 2


_CHARS = "ab1-_. ]^é\n"
_ATOMS = st.one_of(
    st.sampled_from(
        [*"ab1", r"\-", r"\.", "é", ".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\n", r"\x61"]
    ),
    st.builds(
        lambda negated, parts: f"[{'^' if negated else ''}{''.join(parts)}]",
        st.booleans(),
        st.lists(
            st.sampled_from(
                ["a-c", "0-5", "é", r"\d", r"\W", "[:alpha:]", "[:punct:]", r"\]", "_", ".", r"\^"]
            ),
            min_size=1,
            max_size=3,
        ),
    ),
)
_ASSERTIONS = st.sampled_from(["^", "$", r"\b", r"\A", r"\z"])
_REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "*?", "{2}", "{1,3}", "{0,2}?", "{2,}"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    grouped = st.builds("({}){}".format, inner, _REPEATS)
    return st.one_of(st.builds("{}{}".format, inner, inner), st.builds("{}|{}".format, inner, inner), grouped)


EXPRESSIONS = st.builds(
    "{}{}".format,
    st.sampled_from(["", "", "(?i)"]),
    st.recursive(st.one_of(st.builds("{}{}".format, _ATOMS, _REPEATS), _ASSERTIONS), _larger, max_leaves=8),
)


def test_whatever_is_asked_both_databases_find_the_same(postgres_url: str, sqlite_url: str) -> None:
    print(f"MOORAGE_SEED={SEED} repeats this run")
    connected = [engine.connect(url) for url in (postgres_url, sqlite_url)]
    asked: list[str] = []

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(EXPRESSIONS, st.lists(st.text(_CHARS, max_size=8), min_size=1, max_size=20))
    def compare(text: str, names: list[str]) -> None:
        try:
            parsed = pattern.parse(text)
        except PatternError:
            return
        asked.append(text)
        one, other = (ask(at, parsed, names) for at in connected)
        assert one == other, parsed

    compare()
    for at in connected:
        at.dispose()
    assert len(asked) > EXAMPLES / 2
