"""What of our database the reference's tables can't hold: asked before anything is written."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.tables.placement import allocations, consumers, inventories, providers
from moorage.placement.store.inventories import MAX_INT
from moorage.takeover.remainders import EXAMPLES, Remainders, Weight

DIGITS = 6
"""That MariaDB shows of a number of the type which the reference's ratios have there."""


def remainders(connection: Connection, *, to_mariadb: bool) -> Remainders:
    found = Remainders()
    _ask_numbers(connection, found)
    if to_mariadb:
        _ask_ratios(connection, found)
        _ask_twins(connection, found)
    return found


def rounded(ratio: float) -> float:
    return float(f"{ratio:.{DIGITS}g}")


def _ask_numbers(connection: Connection, found: Remainders) -> None:
    for table, names in (
        (providers, ("generation",)),
        (consumers, ("generation",)),
        (inventories, ("total", "reserved", "min_unit", "max_unit", "step_size")),
        (allocations, ("used",)),
    ):
        over = sa.or_(*(table.c[name] > MAX_INT for name in names))
        count = connection.execute(sa.select(sa.func.count()).select_from(table).where(over)).scalar_one()
        sentence = f"{table.name} with a number above {MAX_INT}, which the reference's columns don't hold"
        found.add(f"large-{table.name}", Weight.BLOCKING, sentence, count)


def _ask_ratios(connection: Connection, found: Remainders) -> None:
    ratios = connection.execute(sa.select(inventories.c.allocation_ratio).distinct()).scalars()
    changed = [ratio for ratio in ratios if rounded(ratio) != ratio]
    sentence = f"allocation ratios of more than {DIGITS} digits, which MariaDB rounds"
    found.add("rounded-ratios", Weight.NOTICE, sentence, len(changed), [f"{ratio!r}" for ratio in changed])


def _ask_twins(connection: Connection, found: Remainders) -> None:
    """MariaDB takes names for the same that differ in upper and lower case only."""
    for kind, column in (
        ("names of providers", providers.c.name),
        ("projects", consumers.c.project_id),
        ("users", consumers.c.user_id),
    ):
        same = sa.func.lower(column)
        query = sa.select(same).group_by(same).having(sa.func.count(sa.distinct(column)) > 1)
        twins = list(connection.execute(query).scalars())
        sentence = f"{kind} that differ only in upper and lower case, which MariaDB takes for the same"
        found.add(f"twins-{column.name}", Weight.BLOCKING, sentence, len(twins), twins[:EXAMPLES])
