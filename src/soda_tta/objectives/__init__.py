"""What a set of probabilities is worth without labels, and which pseudo-labels to trust."""

from soda_tta.objectives.equations import (
    LOG_EPSILON,
    Loss,
    Objective,
    PseudoLabels,
    Soda,
    information_of_each,
    mutual_information,
    mutual_information_slope,
    perturbation_norm,
)
from soda_tta.objectives.reliable import Queue, Reliable, Selection

__all__ = [
    "LOG_EPSILON",
    "Loss",
    "Objective",
    "PseudoLabels",
    "Queue",
    "Reliable",
    "Selection",
    "Soda",
    "information_of_each",
    "mutual_information",
    "mutual_information_slope",
    "perturbation_norm",
]
