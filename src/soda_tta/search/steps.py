"""How a gradient, true or estimated, becomes a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.settings import setting
from soda_tta.types import Array


class Rule(Protocol):
    """The hyperparameters of a step, and how it is made."""

    @property
    def lr(self) -> float:
        """The learning rate."""

    def vectors(self, dimension: int) -> dict[str, Array]:
        """What is remembered between steps, by name, before the first step."""

    def step(self, theta: Array, gradient: Array, count: int, memory: dict[str, Array]) -> Array:
        """The next point; `count` is the number of this step, from 1, and `memory` is updated."""


def check_lr(lr: float) -> None:
    """Refuse a learning rate that is not positive."""
    if not lr > 0:
        raise MethodError(f"lr is {lr}; it must be positive.")


def check_share(name: str, value: float) -> None:
    """Refuse a share kept from step to step outside [0, 1): with 1 nothing would ever fade."""
    if not 0 <= value < 1:
        raise MethodError(f"{name} is {value}; it must be in [0, 1).")


def check_weight(name: str, value: float) -> None:
    """Refuse a negative weight."""
    if not value >= 0:
        raise MethodError(f"{name} is {value}; it must not be negative.")


@dataclass(frozen=True, kw_only=True)
class SGD:
    """Stochastic gradient descent with heavy-ball momentum, as in PyTorch (Eq. 3)."""

    lr: float = setting(1e-3, "learning rate")
    momentum: float = setting(0.9, "share of the previous step that is kept")
    weight_decay: float = setting(1e-5, "share of the weights that is added to their gradient")

    def __post_init__(self) -> None:
        check_lr(self.lr)
        check_share("momentum", self.momentum)
        check_weight("weight_decay", self.weight_decay)

    def vectors(self, dimension: int) -> dict[str, Array]:
        """One velocity per parameter."""
        return {"velocity": np.zeros(dimension)}

    def step(self, theta: Array, gradient: Array, count: int, memory: dict[str, Array]) -> Array:
        """The next point."""
        velocity = self.momentum * memory["velocity"] + gradient + self.weight_decay * theta
        memory["velocity"] = velocity
        return theta - self.lr * velocity


@dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam with L2 weight decay, as in PyTorch."""

    lr: float = setting(1e-3, "learning rate")
    beta1: float = setting(0.9, "share of Adam's mean of gradients that is kept at each step")
    beta2: float = setting(0.999, "share of Adam's mean of squares that is kept at each step")
    epsilon: float = setting(1e-8, "added to the square root of Adam's mean of squares")
    weight_decay: float = setting(1e-5, "share of the weights that is added to their gradient")

    def __post_init__(self) -> None:
        check_lr(self.lr)
        check_share("beta1", self.beta1)
        check_share("beta2", self.beta2)
        check_weight("weight_decay", self.weight_decay)
        if not self.epsilon > 0:
            raise MethodError(f"epsilon is {self.epsilon}; it must be positive.")

    def vectors(self, dimension: int) -> dict[str, Array]:
        """First and second moment per parameter."""
        return {"first": np.zeros(dimension), "second": np.zeros(dimension)}

    def step(self, theta: Array, gradient: Array, count: int, memory: dict[str, Array]) -> Array:
        """The next point."""
        gradient = gradient + self.weight_decay * theta
        memory["first"] = self.beta1 * memory["first"] + (1 - self.beta1) * gradient
        memory["second"] = self.beta2 * memory["second"] + (1 - self.beta2) * gradient**2
        first = memory["first"] / (1 - self.beta1**count)
        second = memory["second"] / (1 - self.beta2**count)
        return theta - self.lr * first / (np.sqrt(second) + self.epsilon)
