"""A locale that sorts texts as no program expects, made on the spot: a fresh machine has only C.

Letters come before digits, and these backwards; case and all other characters count only between texts that
are the same otherwise. Who takes a database's order for that of `sorted` finds out.
"""

from __future__ import annotations

import shutil
import string
import subprocess
from pathlib import Path

NAME = "odd.utf8"
PATH_VARIABLE = "LOCPATH"
"""Names the directory in which the C library looks for locales."""

_CHARACTERS = Path("/usr/lib/locale/C.utf8/LC_CTYPE")
"""What letters are; every Debian has it."""


def make(directory: Path) -> str:
    """Put the locale into `directory`, and answer with its name."""
    locale, made = directory / NAME, directory / "made"
    locale.mkdir(parents=True)
    charmap, source = directory / "charmap", directory / "source"
    charmap.write_text(_charmap())
    source.write_text(_order())
    # It complains of all that is not there; only the order is wanted.
    subprocess.run(
        ["localedef", "--force", "--quiet", "-f", str(charmap), "-i", str(source), str(made)],
        capture_output=True,
    )
    if not (made / "LC_COLLATE").exists():
        raise RuntimeError("localedef made no order: is the C library the GNU one?")
    for file in (made / "LC_COLLATE", _CHARACTERS):
        shutil.copy(file, locale)
    for path in (directory, locale, *locale.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return NAME


def _charmap() -> str:
    characters = "".join(f"<U{code:04X}> /x{code:02x} -\n" for code in range(128))
    return f"<code_set_name> UTF-8\n<escape_char> /\nCHARMAP\n{characters}END CHARMAP\n"


def _order() -> str:
    lines = ["comment_char %", "escape_char /", "LC_COLLATE"]
    lines += ["collating-symbol <CAPITAL>", "collating-symbol <SMALL>", "<CAPITAL>", "<SMALL>"]
    lines += ["order_start forward;forward"]
    for letter in string.ascii_lowercase:
        lines += [
            f"{_name(letter.upper())} {_name(letter)};<CAPITAL>",
            f"{_name(letter)} {_name(letter)};<SMALL>",
        ]
    lines += [_name(digit) for digit in reversed(string.digits)]
    others = (chr(code) for code in range(128) if not chr(code).isalnum())
    lines += [f"{_name(other)} IGNORE;{_name(other)}" for other in others]
    return "\n".join([*lines, "UNDEFINED", "order_end", "END LC_COLLATE", ""])


def _name(character: str) -> str:
    return f"<U{ord(character):04X}>"
