"""The licences of all that comes along with Moorage: `python -m packages.licences > docs/licences.md`.

Taken from what the packages say of themselves, as they are installed here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import cast

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
EXTRAS = ("tracing", "mariadb")
"""What packages bring beside what is needed always."""

BUNDLED = (("noVNC", "MPL-2.0"), ("pako", "MIT"))
"""In our own tree (`consoles/novnc`), with their licences beside them."""

BEFORE_3_11_3 = ("async-timeout", "Apache-2.0")
"""What only older Pythons need, as that of Debian 12, whose packages have it wherever this page is made."""

COMPATIBLE = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "LGPL-2.1",
        "LGPL-3.0-only",
        "LGPL-3.0-or-later",
        "LicenseRef-Repoze-BSD-derived",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "MPL-2.0",
        "PSF-2.0",
        "Unlicense",
        "ZPL-2.1",
        "Zlib",
    }
)
"""What may come along with a program under Apache-2.0. Libraries under LGPL and MPL come unchanged, and can
be replaced by whoever installs them."""

_SPOKEN = (
    (r"apache", "Apache-2.0"),
    (r"\bmit\b", "MIT"),
    (r"lesser general public.*\(lgplv3|lgplv3|lgpl-3|LGPL with", "LGPL-3.0-only"),
    (r"lgplv2\.1|lgplv2|lesser general public|\blgpl\b", "LGPL-2.1"),
    (r"mozilla|mpl", "MPL-2.0"),
    (r"python software foundation|psf", "PSF-2.0"),
    (r"zope|zpl", "ZPL-2.1"),
    (r"isc", "ISC"),
    (r"bsd-2|2-clause", "BSD-2-Clause"),
    (r"bsd", "BSD-3-Clause"),
    (r"unlicense", "Unlicense"),
)
"""How licences are called that are not named by their identifier."""


@dataclass(frozen=True)
class Licensed:
    name: str
    licence: str
    """An expression of SPDX."""
    home: str


def runtime() -> list[Licensed]:
    """Everything that Moorage needs to run, and what that needs, in the order of names."""
    older, licence = BEFORE_3_11_3
    found = {older: Licensed(older, licence, _home(older)), **{one.name: one for one in _closure()}}
    return sorted(found.values(), key=lambda one: one.name)


def is_compatible(licence: str) -> bool:
    """Whether there is a way to follow an expression."""
    ways = [part.strip(" ()") for part in licence.split(" OR ")]
    return any(all(name.strip(" ()") in COMPATIBLE for name in way.split(" AND ")) for way in ways)


def _home(name: str) -> str:
    return f"https://pypi.org/project/{name}/"


def _closure() -> Iterator[Licensed]:
    project = tomllib.loads(PROJECT.read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in EXTRAS for line in project["optional-dependencies"][extra]),
    ]
    todo = list(_needed(wanted, ""))
    seen: set[tuple[str, str]] = set()
    told: set[str] = set()
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        found = metadata.distribution(name)
        if name not in told:
            told.add(name)
            yield Licensed(name, _licence(*_told(found)), _home(name))
        todo += list(_needed(found.requires or [], extra))


def _needed(lines: Iterable[str], extra: str) -> Iterator[tuple[str, str]]:
    """By name, and by extra."""
    environment = {**cast("dict[str, str]", default_environment()), "extra": extra}
    for line in lines:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate(environment):
            for wanted in ("", *requirement.extras):
                yield canonicalize_name(requirement.name), wanted


def _told(found: metadata.Distribution) -> tuple[dict[str, str], list[str]]:
    """What a package says of its licence, by the field, and its classifiers."""
    fields = found.metadata
    single = {name: str(fields[name]) for name in ("License-Expression", "License") if name in fields}
    return single, list(fields.get_all("Classifier") or [])


def _licence(told: Mapping[str, str], classified: Iterable[str]) -> str:
    """The expression; else what the classifiers say; else what else is said."""
    expression = told.get("License-Expression")
    if expression:
        return expression
    classifiers = [
        value.rpartition("::")[2].strip()
        for value in classified
        if value.startswith("License ::") and not value.endswith("OSI Approved")
    ]
    free = (told.get("License") or "").partition("\n")[0]
    for words in (*classifiers, free):
        if words in COMPATIBLE:
            return words
        for pattern, name in _SPOKEN:
            if re.search(pattern, words, re.IGNORECASE):
                return name
    return "unknown"


def page() -> str:
    rows = [f"| [{one.name}]({one.home}) | {one.licence} |\n" for one in runtime()]
    bundled = [f"| {name} (in our tree) | {licence} |\n" for name, licence in BUNDLED]
    return (
        "# Licences\n\n"
        "Moorage is under the Apache License 2.0. What it needs to run comes along in its packages, "
        "unchanged, and is under these licences.\n"
        "`make licences` writes this page, from what the packages say of themselves.\n\n"
        "| package | licence |\n|---|---|\n" + "".join([*bundled, *rows])
    )


if __name__ == "__main__":
    print(page(), end="")
