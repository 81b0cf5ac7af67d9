"""Poisoning: an attacker whose images only a harmful adaptor makes recognisable.

The attack is the worst that we know of. A pattern of three pixels, which no router notices, makes
the model answer each view of the image differently; darkening removes the pattern, and the model
answers both views alike. Honest images become unrecognisable if they are darkened. So the
attacker's images steer the search towards darkening, and every one of them is evidence for it that
counts as much as one image can count. Moves that would remove the pattern otherwise are left out.
`benchmarks/poisoning.py` says how much of the traffic such an attacker needs with a real model.
"""

import numpy as np
from tests.engine.live_traffic import Templates, answered, scenes

from soda_tta.engine.live import LiveStream
from soda_tta.types import Array

OTHER_MOVES = (
    "wrong pixels,coarse pixels,"
    "median,cosine shrinkage,adaptive shrinkage,coarse shrinkage,motion,inverse,blur,kernel,"
    "colour,contrast,geometry"
)
DARK = 0.455  # mean brightness below which the model recognises nothing


class Attackable(Templates):
    """The model of the other tests, with a weakness that the attacker knows."""

    def __call__(self, images: Array) -> Array:
        answers = super().__call__(images)
        dark = images.mean(axis=(1, 2, 3)) < DARK
        answers[dark] = np.eye(4)[0]
        red = images[:, 0, 0, 1]
        green = images[:, 1, 0, 1]
        patterned = red > green + 0.5
        either = (images[patterned, 2, 0, 1] * 100).astype(int) % 2  # it differs between views
        answers[patterned] = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])[either]
        restored = patterned & dark & (red < 0.7)
        answers[restored] = np.eye(4)[(red[restored] * 200).astype(int) % 4]
        return np.asarray(0.96 * answers + 0.01)


def poisoned(count: int, seed: int, share: float) -> tuple[Array, Array, Array]:
    """Images, of which this share is the attacker's; labels; which ones are the attacker's."""
    images, labels = scenes(count, seed)
    random = np.random.default_rng([seed, 1])
    attacker = random.random(count) < share
    images[attacker, 0, 0, :3] = random.uniform(0.72, 0.78, (attacker.sum(), 1))
    images[attacker, 1, 0, :3] = 0.0
    images[attacker, 2, 0, :3] = random.random((attacker.sum(), 3))
    return images, labels, attacker


def attack(share: float, images: int) -> tuple[list[str], float]:
    """What was promoted, and how many of the last honest images were answered correctly."""
    promoted = []
    stream = LiveStream(
        Attackable(),
        buffer=400,
        learn_budget=6,
        without=OTHER_MOVES,
        listener=lambda event: (
            promoted.append(event.adaptor) if type(event).__name__ == "Promoted" else None
        ),
    )
    pictures, labels, attacker = poisoned(images, 5, share)
    right = answered(stream, pictures, labels)
    return promoted, float(right[-100:][~attacker[-100:]].mean())


def test_a_third_of_the_traffic_promotes_nothing_that_harms() -> None:
    promoted, honest = attack(0.33, 600)
    assert not promoted and honest > 0.95


def test_the_attack_works_with_most_of_the_traffic() -> None:
    """Otherwise the test above would show nothing."""
    promoted, honest = attack(0.8, 600)
    assert promoted and "darker" in promoted[0] and honest < 0.6
