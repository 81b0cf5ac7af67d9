"""What a set of probabilities is worth without labels, and which pseudo-labels to trust."""

from soda_tta.objectives.agreement import (
    agreement_of_each,
    matching_information_of_each,
    pairs_of_different,
    shared_information_of_each,
)
from soda_tta.objectives.class_prior import (
    class_weights,
    information_against,
    mutual_information_against,
)
from soda_tta.objectives.equations import (
    Loss,
    Objective,
    PseudoLabels,
    Soda,
    cross_entropy,
    cross_entropy_slope,
    entropy,
    information_of_each,
    mutual_information,
    mutual_information_slope,
    perturbation_norm,
)
from soda_tta.objectives.queue import Queue
from soda_tta.objectives.reliable import Reliable, Selection
from soda_tta.objectives.tempering import tempered

__all__ = [
    "Loss",
    "Objective",
    "PseudoLabels",
    "Queue",
    "Reliable",
    "Selection",
    "Soda",
    "agreement_of_each",
    "class_weights",
    "cross_entropy",
    "cross_entropy_slope",
    "entropy",
    "information_against",
    "information_of_each",
    "matching_information_of_each",
    "mutual_information",
    "mutual_information_against",
    "mutual_information_slope",
    "pairs_of_different",
    "perturbation_norm",
    "shared_information_of_each",
    "tempered",
]
