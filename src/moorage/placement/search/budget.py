"""How much work a search may do."""

from __future__ import annotations

LEAST_STEPS = 1000
REFUND = 64
"""Steps that finding a candidate gives back, so that the bound is on fruitless work."""


class Budget:
    """The choices of a provider that may still be tried, over all trees; None means no bound."""

    def __init__(self, steps: int | None) -> None:
        self.left = steps
        self.exhausted = False

    def allowance(self) -> Allowance:
        return Allowance(self)


class Allowance:
    """What one tree may spend: a quarter of what is left, so that a hopeless tree does not hide the next."""

    __slots__ = ("_budget", "_left", "_spent")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._left = 0 if budget.left is None else max(budget.left // 4, LEAST_STEPS)
        self._spent = 0

    def spend(self, steps: int) -> bool:
        """Take some steps; False if the search of this tree has to end."""
        budget = self._budget
        if budget.left is None:
            return True
        if self._left <= 0 or budget.left <= 0:
            budget.exhausted = True
            return False
        self._left -= steps
        budget.left -= steps
        self._spent += steps
        return True

    def earn(self) -> None:
        """A candidate was found."""
        if self._budget.left is not None:
            refund = min(self._spent, REFUND)
            self._left += refund
            self._budget.left += refund
            self._spent = 0
