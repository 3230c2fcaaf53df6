"""Columns of inventories: whatever comes and goes, each row can be put back where it belongs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.placement.fleet.column import Column
from moorage.placement.fleet.record import InventoryRecord

SIZE = 12
MOVES = st.lists(st.tuples(st.sampled_from(("come", "go", "many")), st.integers(0, SIZE - 1)), max_size=40)


def inventory(total: int) -> InventoryRecord:
    return InventoryRecord(1, total, 0, 1, total, 1, 1.0, 0)


@given(MOVES)
def test_values_find_their_providers(moves: list[tuple[str, int]]) -> None:
    column = Column()
    row_of: dict[int, int] = {}
    for move, slot in moves:
        if move == "go" and slot in row_of:
            row = row_of.pop(slot)
            moved = column.remove(row)
            if moved is not None:
                row_of[moved] = row
        elif move == "come" and slot not in row_of:
            row_of[slot] = column.append(slot, inventory(slot + 1))
        elif move == "many":
            new = [each for each in range(slot, SIZE) if each not in row_of]
            if new:
                first = column.extend(new, [inventory(each + 1) for each in new])
                row_of |= {each: first + number for number, each in enumerate(new)}
        rows = column.rows()
        expected = [slot + 1 if slot in row_of else 0 for slot in range(SIZE)]
        assert rows.by_position(rows.capacity, SIZE).tolist() == expected
        assert rows.in_place == (rows.where.tolist() == list(range(len(row_of))))


def test_what_is_in_place_is_not_copied() -> None:
    column = Column()
    column.extend(range(4), [inventory(5)] * 4)
    rows = column.rows()
    assert rows.in_place
    assert np.shares_memory(rows.by_position(rows.capacity, 4), rows.capacity)
    assert rows.by_position(rows.capacity, 6).tolist() == [5, 5, 5, 5, 0, 0]
