"""What every gradient search shares: a point, a rule that moves it, and a state."""

from __future__ import annotations

import numpy as np

from soda_tta.search.steps import Rule
from soda_tta.types import Array


class Descent:
    """A point that moves along gradients by a rule (Eq. 3)."""

    def __init__(self, theta: Array, rule: Rule) -> None:
        self.theta: Array = np.asarray(theta, np.float64)
        self.rule = rule
        self.count = 0
        self.memory = rule.vectors(self.theta.size)

    @property
    def length(self) -> float:
        """The learning rate."""
        return self.rule.lr

    def move(self, gradient: Array) -> None:
        """Take one step against a gradient."""
        self.count += 1
        self.theta = self.rule.step(self.theta, gradient, self.count, self.memory)

    def state(self) -> dict[str, Array]:
        """Everything that is needed to continue, by name."""
        return {"theta": self.theta, "count": np.array(self.count), **self.memory}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a state."""
        self.theta = state["theta"]
        self.count = state["count"].item()
        self.memory = {name: state[name] for name in self.memory}
