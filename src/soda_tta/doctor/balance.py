"""Balance check: mutual information assumes that all classes are equally frequent."""

from __future__ import annotations

from typing import Any

import numpy as np

from soda_tta.doctor.finding import Finding
from soda_tta.types import Array

EVEN = 0.9  # evenness above which the predictions count as balanced
UNEVEN = 0.6  # evenness below which they count as very unbalanced
DRAWS = 200


def evenness(classes: Array, of: int, seed: int = 0) -> float:
    """The entropy of predicted classes, relative to that of balanced random labels.

    `classes` are the predicted classes, `of` is the number of classes.

    >>> evenness(np.arange(100) % 10, of=10) >= 1, evenness(np.zeros(100, int), of=10)
    (True, 0.0)
    """
    generator = np.random.default_rng(seed)
    draws = generator.multinomial(len(classes), np.full(of, 1 / of), size=DRAWS)
    balanced = max(float(_entropy(draws).mean()), 1e-12)
    return max(0.0, float(_entropy(np.bincount(classes, minlength=of)) / balanced))


def _entropy(counts: Array) -> Array:
    """The entropy of counts along the last axis, in nats."""
    shares = counts / counts.sum(axis=-1, keepdims=True)
    values: Array = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=-1)
    return values


def check_balance(probabilities: Array, clean: Array | None = None) -> Finding:
    """Whether the predictions are spread evenly over the classes.

    A shift often makes a model predict a few classes only, so uneven predictions do not prove
    uneven images. `clean`, the responses to clean images, distinguishes the two.
    """
    classes = probabilities.shape[1]
    predicted = probabilities.argmax(axis=1)
    counts = np.bincount(predicted, minlength=classes)
    order = np.argsort(-counts)
    even = evenness(predicted, classes)
    measurements: dict[str, Any] = {
        "evenness": even,
        "classes": classes,
        "classes_predicted": int((counts > 0).sum()),
        "largest_class": int(order[0]),
        "largest_share": float(counts[order[0]] / len(predicted)),
        "two_largest_share": float(counts[order[:2]].sum() / len(predicted)),
    }
    summary = (
        f"{measurements['classes_predicted']} of {classes} classes are predicted, "
        f"one of them for {measurements['largest_share']:.0%} of the images"
    )
    if clean is not None:
        measurements["clean_evenness"] = evenness(clean.argmax(axis=1), classes)
        if measurements["clean_evenness"] < EVEN:
            return _unbalanced_classes(measurements, summary)
    if even >= EVEN:
        return Finding(
            name="balance",
            state="good",
            sentence=f"{summary}: an even distribution.",
            measurements=measurements,
        )
    if clean is not None:
        return Finding(
            name="balance",
            state="good",
            sentence=f"{summary}, but predictions for the clean images are even. If the classes "
            "are the same, the shift makes the model prefer a few of them, which adapting can "
            "undo.",
            measurements=measurements,
        )
    degree = "an uneven" if even >= UNEVEN else "a very uneven"
    return Finding(
        name="balance",
        state="caution",
        sentence=f"{summary}: {degree} distribution. Either the shift makes the model prefer a few "
        "classes, which adapting can undo, or the images show few classes, and adapting harms.",
        measurements=measurements,
        remedy='Pass clean images (clean="DIR"), or look at some images, to find out which.',
    )


def _unbalanced_classes(measurements: dict[str, Any], summary: str) -> Finding:
    """Predictions for the clean images are uneven, too."""
    clean_evenness = measurements["clean_evenness"]
    return Finding(
        name="balance",
        state="caution" if clean_evenness >= UNEVEN else "bad",
        sentence=f"{summary}, and predictions for the clean images are uneven, too (evenness "
        f"{clean_evenness:.2f}). The classes themselves seem to be unbalanced, and mutual "
        "information would push images into the rare ones.",
        measurements=measurements,
        remedy="Choose about as many images of each class, or leave the images as they are.",
    )
