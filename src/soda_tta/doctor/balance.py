"""How evenly the answers are spread over the classes: mutual information takes balance for granted."""

from __future__ import annotations

from typing import Any

import numpy as np

from soda_tta.doctor.finding import Finding
from soda_tta.types import Array

EVEN, UNEVEN = 0.9, 0.6  # shares of the evenness that balanced labels would show
DRAWS = 200


def evenness(classes: Array, of: int, seed: int = 0) -> float:
    """The entropy of the answered classes, as a share of what evenly drawn labels of that number would have.

    >>> evenness(np.arange(100) % 10, of=10) >= 1, evenness(np.zeros(100, int), of=10)
    (True, 0.0)
    """
    generator = np.random.default_rng(seed)
    draws = generator.multinomial(len(classes), np.full(of, 1 / of), size=DRAWS)
    return max(
        0.0,
        float(
            _entropy(np.bincount(classes, minlength=of)) / max(float(_entropy(draws).mean()), 1e-12)
        ),
    )


def _entropy(counts: Array) -> Array:
    shares = counts / counts.sum(axis=-1, keepdims=True)
    values: Array = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=-1)
    return values


def balance(answers: Array, clean: Array | None = None) -> Finding:
    """Shifted images are often all given a few classes, so that uneven answers need not mean uneven images.

    Answers to clean images tell the two apart.
    """
    of, chosen = answers.shape[1], answers.argmax(axis=1)
    counts = np.bincount(chosen, minlength=of)
    order = np.argsort(-counts)
    even = evenness(chosen, of)
    numbers: dict[str, Any] = {
        "evenness": even,
        "classes": of,
        "classes_answered": int((counts > 0).sum()),
        "largest_class": int(order[0]),
        "largest_share": float(counts[order[0]] / len(chosen)),
        "two_largest_share": float(counts[order[:2]].sum() / len(chosen)),
    }
    told = f"{numbers['classes_answered']} of {of} classes are answered, {numbers['largest_share']:.0%} of them one class"
    if clean is not None:
        numbers["clean_evenness"] = evenness(clean.argmax(axis=1), of)
        return _against_clean(even, numbers, told)
    if even >= EVEN:
        return Finding(
            name="balance", state="good", sentence=f"{told}: evenly spread.", numbers=numbers
        )
    return Finding(
        name="balance",
        state="caution",
        sentence=f"{told}: {'unevenly' if even >= UNEVEN else 'very unevenly'} spread. Either the shift makes the "
        "model prefer a few classes, which adapting can undo, or the images show few classes, and adapting harms.",
        numbers=numbers,
        remedy="Give a clean folder (--clean) or look at a few images to know which it is.",
    )


def _against_clean(even: float, numbers: dict[str, Any], told: str) -> Finding:
    usual = numbers["clean_evenness"]
    if usual < EVEN:
        return Finding(
            name="balance",
            state="caution" if usual >= UNEVEN else "bad",
            sentence=f"{told}, and on the clean images the answers are uneven too (evenness {usual:.2f}): the classes "
            "themselves seem unbalanced, and mutual information would push images into the rare ones.",
            numbers=numbers,
            remedy="Choose about as many images of each class, or leave the images as they are.",
        )
    if even >= EVEN:
        return Finding(
            name="balance", state="good", sentence=f"{told}: evenly spread.", numbers=numbers
        )
    return Finding(
        name="balance",
        state="good",
        sentence=f"{told}, but the clean images are spread evenly: if the classes are the same, the shift makes the "
        "model prefer a few of them, which adapting can undo.",
        numbers=numbers,
    )
