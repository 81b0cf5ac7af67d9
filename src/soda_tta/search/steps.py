"""How a gradient, true or estimated, becomes a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.types import Array


class Rule(Protocol):
    """Hyper-parameters of a step; `vectors` are what it remembers between steps, by name."""

    @property
    def lr(self) -> float: ...

    def vectors(self, dimension: int) -> dict[str, Array]: ...

    def step(
        self, theta: Array, gradient: Array, count: int, memory: dict[str, Array]
    ) -> Array: ...


def check_lr(lr: float) -> None:
    if not lr > 0:
        raise MethodError(f"lr {lr} must be positive.")


def check_share(name: str, value: float) -> None:
    """What is kept from step to step: all of it would never fade."""
    if not 0 <= value < 1:
        raise MethodError(f"{name} {value} must lie in [0, 1).")


def check_weight(name: str, value: float) -> None:
    if not value >= 0:
        raise MethodError(f"{name} {value} must not be negative.")


@dataclass(frozen=True, kw_only=True)
class SGD:
    """Stochastic gradient descent with heavy-ball momentum, as in PyTorch (Eq. 3)."""

    lr: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 1e-5

    def __post_init__(self) -> None:
        check_lr(self.lr)
        check_share("momentum", self.momentum)
        check_weight("weight_decay", self.weight_decay)

    def vectors(self, dimension: int) -> dict[str, Array]:
        return {"velocity": np.zeros(dimension)}

    def step(self, theta: Array, gradient: Array, count: int, memory: dict[str, Array]) -> Array:
        memory["velocity"] = (
            self.momentum * memory["velocity"] + gradient + self.weight_decay * theta
        )
        return theta - self.lr * memory["velocity"]


@dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam with L2 weight decay, as in PyTorch."""

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 1e-5

    def __post_init__(self) -> None:
        check_lr(self.lr)
        check_share("beta1", self.beta1)
        check_share("beta2", self.beta2)
        check_weight("weight_decay", self.weight_decay)
        if not self.epsilon > 0:
            raise MethodError(f"epsilon {self.epsilon} must be positive.")

    def vectors(self, dimension: int) -> dict[str, Array]:
        return {"first": np.zeros(dimension), "second": np.zeros(dimension)}

    def step(self, theta: Array, gradient: Array, count: int, memory: dict[str, Array]) -> Array:
        gradient = gradient + self.weight_decay * theta
        memory["first"] = self.beta1 * memory["first"] + (1 - self.beta1) * gradient
        memory["second"] = self.beta2 * memory["second"] + (1 - self.beta2) * gradient**2
        first = memory["first"] / (1 - self.beta1**count)
        second = memory["second"] / (1 - self.beta2**count)
        return theta - self.lr * first / (np.sqrt(second) + self.epsilon)
