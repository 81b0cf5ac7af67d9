"""How a model confirms what a helper has ranked: on few images, with few candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.judging.scene_means import scene_count
from soda_tta.judging.verdict import Verdict, sentence_of
from soda_tta.objectives import entropy, mutual_information
from soda_tta.types import Array

SHORTLIST = 3  # candidates besides the images as they are
CONFIRMED = 20  # one in so many images confirms
FEWEST_CONFIRMED = 24  # with fewer images, mutual information says too little
USUAL_FEWEST = 50  # of small sets a larger share confirms, but at most a third
MOST_CONFIRMED = 150
SEARCH_MOVES = 12  # a search of the model tries so many moves, those that the helper ranks first
SEARCH_ROUNDS = 4  # and should last so many rounds
FEWEST_SEARCHED = 24  # images per round of it
SAMPLES = 2000  # bootstrap samples
ACCEPTED = 0.05  # share of the samples in which the images as they are may be better


@dataclass(frozen=True)
class Confirmation:
    """How many queries go where.

    Parameters
    ----------
    images : of the run.
    confirmed : images on which the shortlist is compared; 0: there is no adaptation.
    probe : queries with which the model itself searches on, from what was confirmed.
    shortened : whether the budget does not cover the usual number of images.
    """

    images: int
    confirmed: int
    probe: int = 0
    shortened: bool = False

    @staticmethod
    def within(images: int, limit: int | None) -> Confirmation:
        """What fits within a limit; a search of the model only if two rounds of it fit too.

        >>> Confirmation.within(2000, None)
        Confirmation(images=2000, confirmed=100, probe=0, shortened=False)
        """
        usual = min(MOST_CONFIRMED, max(USUAL_FEWEST, images // CONFIRMED), images // 3)
        wanted = usual if usual >= FEWEST_CONFIRMED else 0
        if limit is None:
            return Confirmation(images, wanted)
        affordable = max(0, limit - images) // SHORTLIST
        confirmed = min(wanted, affordable)
        if confirmed < FEWEST_CONFIRMED:
            confirmed = 0
        # What a search finds is asked for on the same images once more.
        probe = limit - images - (SHORTLIST + 1) * confirmed
        if not confirmed or probe < 2 * FEWEST_SEARCHED * (1 + SEARCH_MOVES):
            probe = 0
        return Confirmation(images, confirmed, probe, shortened=confirmed < wanted)

    @property
    def queries(self) -> dict[str, int]:
        """By purpose, at most."""
        compared = SHORTLIST + 1 + (self.probe > 0)
        queries = {
            "probe": self.probe,
            "judge": compared * self.confirmed,
            "evaluate": self.images - self.confirmed,
        }
        return {purpose: count for purpose, count in queries.items() if count}

    @property
    def outline(self) -> str:
        """In words."""
        if not self.confirmed:
            return (
                "too few images or queries to confirm what the helper would choose; the model's "
                "own answers are used"
            )
        search = f"; then a search with {self.probe:,} queries" if self.probe else ""
        return (
            f"the helper searches without queries; the model compares {SHORTLIST} candidates on "
            f"{self.confirmed} images{search}"
        )


def search_batch(images: int, probe: int) -> int:
    """Images per round of a search of the model on at most so many images.

    >>> search_batch(384, 3600)
    69
    """
    per_image = SEARCH_ROUNDS * (1 + SEARCH_MOVES)
    return min(images, max(FEWEST_SEARCHED, probe // per_image))


def chosen(rows: Array, scenes: Array, random: np.random.Generator) -> tuple[int, Verdict]:
    """The candidate with the most mutual information, and whether it beats the first one.

    Parameters
    ----------
    rows : responses (candidates, images, classes); the first candidate leaves images as they are.
    scenes : the scene of each image; scenes, not images, are drawn.
    random : draws the bootstrap samples.
    """
    information = [mutual_information(each) for each in rows]
    best = int(np.argmax(information))
    other = best or 1 + int(np.argmax(information[1:]))
    weights = scene_weights(scenes, random)
    worse = sampled(rows[other], weights) <= sampled(rows[0], weights)
    share = (float(worse.sum()) + 1) / (len(weights) + 1)
    verdict = Verdict(
        adopt=share <= ACCEPTED,
        sentence="",
        before=information[0],
        after=information[other],
        p_value=share,
        level=ACCEPTED,
        images=len(scenes),
        independent=scene_count(scenes),
    )
    text = sentence_of(verdict)
    return other, Verdict(**{**verdict.facts(), "sentence": text})


def scene_weights(scenes: Array, random: np.random.Generator) -> Array:
    """Bootstrap weights (samples, images); each row sums to 1."""
    _, number = np.unique(scenes, return_inverse=True)
    count = int(number.max()) + 1
    drawn = random.multinomial(count, np.full(count, 1 / count), SAMPLES)
    weights = drawn[:, number].astype(np.float64)
    normalised: Array = weights / weights.sum(axis=1, keepdims=True)
    return normalised


def sampled(rows: Array, weights: Array) -> Array:
    """The mutual information of every bootstrap sample."""
    exact = np.asarray(rows, np.float64)
    information: Array = entropy(weights @ exact) - weights @ entropy(exact)
    return information
