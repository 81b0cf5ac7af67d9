"""Label-free estimators of accuracy, compared by benchmarks/accuracy_estimates.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from soda_tta.judging.balanced import (
    agreement_score,
    balanced_agreement,
    balanced_classes,
    check_rows,
)
from soda_tta.objectives.equations import mutual_information
from soda_tta.objectives.tempering import tempered
from soda_tta.types import Array

TEMPERATURES = (0.3, 10.0)  # the range in which a temperature is fitted to clean labels


class Responses:
    """The model's responses by name; kept in a file, if one is given, and not queried again."""

    def __init__(self, box: Any, path: Path | None) -> None:
        self.box = box
        self.path = path
        self.stored: dict[str, Array] = {}
        if path is not None and path.exists():
            with np.load(path) as arrays:
                self.stored = dict(arrays)

    def get(self, name: str, images: Callable[[], Array]) -> Array:
        if name not in self.stored:
            self.stored[name] = self.box(images())
        return check_rows(self.stored[name])

    def save(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(self.path, **self.stored)


@dataclass
class Situation:
    """What an estimator may use. Clean labels are only for estimators that declare the need."""

    name: str
    load_images: Callable[[], Array]
    responses: Responses
    clean: Array  # responses to clean images
    clean_labels: Array

    @cached_property
    def images(self) -> Array:
        return self.load_images()

    @cached_property
    def probabilities(self) -> Array:
        return self.responses.get(f"{self.name}-answers", lambda: self.images)

    @cached_property
    def flipped(self) -> Array:
        """Responses to the images mirrored left to right."""

        def mirror() -> Array:
            return np.ascontiguousarray(self.images[..., ::-1])

        return self.responses.get(f"{self.name}-flipped", mirror)

    @cached_property
    def assigned(self) -> Array:
        return balanced_classes(self.probabilities)

    @property
    def clean_accuracy(self) -> float:
        return float((self.clean.argmax(axis=1) == self.clean_labels).mean())


def mean_confidence(situation: Situation) -> float:
    return float(situation.probabilities.max(axis=1).mean())


def scaled_confidence(situation: Situation) -> float:
    """Mean confidence at the temperature that makes the clean labels most likely."""
    rows = np.arange(len(situation.clean))

    def negative_log_likelihood(log_temperature: float) -> float:
        scaled = tempered(situation.clean, float(np.exp(-log_temperature)))
        return float(-np.log(scaled[rows, situation.clean_labels] + 1e-12).mean())

    bounds = tuple(np.log(TEMPERATURES))
    best = minimize_scalar(negative_log_likelihood, bounds=bounds, method="bounded").x
    return float(tempered(situation.probabilities, float(np.exp(-best))).max(axis=1).mean())


def difference_of_confidences(situation: Situation) -> float:
    """Clean accuracy, changed by as much as the mean confidence changes."""
    clean_confidence = float(situation.clean.max(axis=1).mean())
    return situation.clean_accuracy - clean_confidence + mean_confidence(situation)


def thresholded_confidence(situation: Situation) -> float:
    """The share above the threshold that as many clean responses pass as are correct."""
    threshold = np.quantile(situation.clean.max(axis=1), 1 - situation.clean_accuracy)
    return float((situation.probabilities.max(axis=1) >= threshold).mean())


def flip_agreement(situation: Situation) -> float:
    """How often an image and its mirror image get the same class."""
    classes = situation.probabilities.argmax(axis=1)
    return float(np.mean(classes == situation.flipped.argmax(axis=1)))


def information(situation: Situation) -> float:
    """Mutual information as a share of its maximum."""
    classes = situation.probabilities.shape[1]
    return mutual_information(situation.probabilities) / float(np.log(classes))


def nuclear_norm(situation: Situation) -> float:
    """Nuclear norm of the probabilities as a share of its maximum."""
    count, classes = situation.probabilities.shape
    norm = np.linalg.norm(situation.probabilities, "nuc")
    return float(norm / np.sqrt(count * min(count, classes)))


def optimal_transport(situation: Situation) -> float:
    """Mean probability of the balanced assignment (confidence optimal transport)."""
    rows = np.arange(len(situation.assigned))
    return float(situation.probabilities[rows, situation.assigned].mean())


def balanced(temperature: float) -> Callable[[Situation], float]:
    """Balanced agreement at a fixed temperature."""
    return lambda situation: balanced_agreement(
        situation.probabilities, situation.assigned, temperature
    )


def scaled_agreement(situation: Situation) -> float:
    on_clean = agreement_score(situation.clean)
    return min(1.0, agreement_score(situation.probabilities) * situation.clean_accuracy / on_clean)


def agreement_with_flip(situation: Situation) -> float:
    rows = np.arange(len(situation.assigned))
    return float(situation.flipped[rows, situation.assigned].mean())


class Estimator(NamedTuple):
    """A way to estimate accuracy."""

    needs: str  # besides the responses
    queries: int  # per image
    fitted: bool  # whether a line through the six chosen corruptions turns it into an accuracy
    estimate: Callable[[Situation], float]


ESTIMATORS = {
    "mean confidence": Estimator("nothing", 1, False, mean_confidence),
    "temperature-scaled confidence": Estimator("clean labels", 1, False, scaled_confidence),
    "difference of confidences": Estimator("clean labels", 1, False, difference_of_confidences),
    "average thresholded confidence": Estimator("clean labels", 1, False, thresholded_confidence),
    "agreement under flip": Estimator("nothing", 2, False, flip_agreement),
    "mutual information, line fitted": Estimator("balance, the six's labels", 1, True, information),
    "nuclear norm, line fitted": Estimator("balance, the six's labels", 1, True, nuclear_norm),
    "confidence optimal transport": Estimator("balance", 1, False, optimal_transport),
    "balanced agreement, T=1": Estimator("balance", 1, False, balanced(1.0)),
    "balanced agreement, T=1.25": Estimator("balance", 1, False, balanced(1.25)),
    "balanced agreement, T=1.5": Estimator("balance", 1, False, balanced(1.5)),
    "balanced agreement, T=2": Estimator("balance", 1, False, balanced(2.0)),
    "balanced agreement, scaled": Estimator(
        "balance, the clean accuracy", 1, False, scaled_agreement
    ),
    "balanced agreement of two looks": Estimator("balance", 2, False, agreement_with_flip),
}
SHIPPED = (  # stored for every cell
    "mean confidence",
    "balanced agreement, T=1.25",
    "balanced agreement, scaled",
    "balanced agreement of two looks",
)
