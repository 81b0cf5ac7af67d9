"""What every gradient search shares: a point, a rule to move it, and a way to be picked up again."""

from __future__ import annotations

import numpy as np

from soda_tta.search.steps import Rule
from soda_tta.types import Array


class Descent:
    """A point that moves along gradients by a rule (Eq. 3)."""

    def __init__(self, theta: Array, rule: Rule) -> None:
        self.theta: Array = np.asarray(theta, np.float64)
        self.rule, self.count = rule, 0
        self.memory = rule.vectors(self.theta.size)

    def move(self, gradient: Array) -> None:
        self.count += 1
        self.theta = self.rule.step(self.theta, gradient, self.count, self.memory)

    def state(self) -> dict[str, Array]:
        """Everything that must be kept to continue, by name."""
        return {"theta": self.theta, "count": np.array(self.count), **self.memory}

    def restore(self, state: dict[str, Array]) -> None:
        self.theta, self.count = state["theta"], state["count"].item()
        self.memory = {name: state[name] for name in self.memory}
