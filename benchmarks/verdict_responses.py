"""Responses to changes of images whose true effect is known: what a verdict is tested on.

A set is some images with one shift in front of one model. Its changes are the identity, random sums
of moves of the bank, and what searches by mutual information found: the best single moves, sums of
up to four, and sums that a search on 24 images found (it fits those images too closely). The images
of the searches are not among the judged ones. The true effect of a change is measured with labels
on the judged images and on fresh ones. Only missing responses are queried.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from soda_tta import zoo
from soda_tta.adaptors import Bank
from soda_tta.adaptors.parts import moves
from soda_tta.data import Corrupted, load_dataset
from soda_tta.judging.verdict import moved
from soda_tta.objectives import mutual_information
from soda_tta.types import Array
from verdicts import FREQUENT_CLASSES, UNBALANCED, random_changes

SINGLE = 3  # best single moves
TRIED = 8  # moves that a search tries again in its later rounds
LONGEST = 4  # moves
FEW = 24  # images of the searches that fit them too closely
PIECE = 100  # images at a time
WITHOUT = ("non-local means",)  # slow to compute, and hardly ever chosen


class Effort(NamedTuple):
    """How many images and changes."""

    judged: int
    fresh: int
    searched: int
    random: int
    overfitted: int  # searches on few images


SMALL = Effort(judged=750, fresh=250, searched=96, random=8, overfitted=2)  # of 1,000 images
LARGE = Effort(judged=300, fresh=0, searched=24, random=2, overfitted=0)  # of 400 images


class ImageSet(NamedTuple):
    """Some images with one shift, in front of one model."""

    data: str
    model: str
    corruption: str
    severity: int = 5
    unbalanced: bool = False

    @property
    def group(self) -> str:
        """Sets whose counts are added."""
        return f"{self.model}{UNBALANCED if self.unbalanced else ''}"

    def __str__(self) -> str:
        return f"{self.group}, {self.corruption} {self.severity}"

    @property
    def effort(self) -> Effort:
        return LARGE if self.data.startswith("imagenet") else SMALL

    @property
    def file(self) -> str:
        """The name of the file of its responses."""
        unbalanced = "_unbalanced" if self.unbalanced else ""
        return f"{self.model}_{self.corruption}_{self.severity}{unbalanced}.npz"


def responses(image_set: ImageSet, folder: Path) -> dict[str, Array]:
    """Responses to the judged images through each change, and its true effect.

    Returns
    -------
    dict of arrays
        `views`: (changes, views, judged, classes); `accuracy`: (changes,), in %, on judged and
        fresh images; `labels`: (judged,); `changes`: (changes, parameters). The first change is
        the identity. The views are the image and the image shifted (`judging/verdict.py: moved`).
    """
    path = folder / image_set.file
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        arrays = queried(image_set)
        np.savez(path.with_suffix(".part.npz"), **arrays)
        path.with_suffix(".part.npz").rename(path)
    return dict(np.load(path))


def queried(image_set: ImageSet) -> dict[str, Array]:
    """Query the model for one set."""
    effort = image_set.effort
    data = load_dataset(image_set.data)
    labels = np.asarray(data.labels)
    count = effort.searched + effort.judged + effort.fresh
    places = image_places(labels, count, image_set.unbalanced)
    source: Any = data.subset(places)
    if image_set.corruption != "clean":
        source = Corrupted(source, image_set.corruption, image_set.severity, seed=0)
    box = zoo.deployed(image_set.model, threads=1)
    bank = Bank.for_size(source[slice(0, 1)].shape[1:]).build()
    found = search_changes(box, bank, source[slice(0, effort.searched)], effort.overfitted)
    random = random_changes(effort.random, seed=1, without=WITHOUT)
    changes = np.concatenate([random, found])
    rows: list[Array] = []
    correct = np.zeros((len(changes), count - effort.searched), bool)
    for start in range(effort.searched, count, PIECE):
        stop = min(start + PIECE, count)
        adapted = bank.candidates(source[slice(start, stop)], changes)
        judged = min(PIECE, max(0, effort.searched + effort.judged - start))
        piece = []
        for number, images in enumerate(adapted):
            answers = box(images)
            own = slice(start - effort.searched, stop - effort.searched)
            correct[number, own] = answers.argmax(axis=1) == labels[places[start:stop]]
            if judged:
                shifted = box(moved(images[:judged]))
                piece.append(np.array([answers[:judged], shifted], np.float32))
        if judged:
            rows.append(np.array(piece))
    return {
        "views": np.concatenate(rows, axis=2),
        "accuracy": 100 * correct.mean(axis=1),
        "correct": correct[:, : effort.judged],
        "labels": labels[places[effort.searched :][: effort.judged]],
        "changes": changes,
    }


def image_places(labels: Array, count: int, unbalanced: bool) -> Array:
    """Random images, or 90 % of two classes, in random order."""
    generator = np.random.default_rng(3)
    if not unbalanced:
        return generator.permutation(len(labels))[:count]
    frequent = np.isin(labels, FREQUENT_CLASSES)
    many = int(0.9 * count)
    parts = [
        generator.choice(np.flatnonzero(frequent), many, replace=False),
        generator.choice(np.flatnonzero(~frequent), count - many, replace=False),
    ]
    return generator.permutation(np.concatenate(parts))


def search_changes(box: Any, bank: Any, images: Array, overfitted: int) -> Array:
    """What searches by mutual information find."""
    prepared = bank.prepare(images)
    singles, path = pursuit(box, bank, prepared)
    changes = [*singles[:SINGLE], *path[1:]]
    for number in range(overfitted):
        few = np.random.default_rng(number).permutation(len(images))[:FEW]
        changes.append(pursuit(box, bank, prepared[few])[1][-1])
    return np.array(changes)


def pursuit(box: Any, bank: Any, prepared: Array) -> tuple[Array, list[Array]]:
    """Single moves, the best first, and the best sums of one to four moves."""

    def values(thetas: Array) -> Array:
        return np.array(
            [mutual_information(box(bank.mix(prepared, theta[None])[0])) for theta in thetas]
        )

    steps = moves(WITHOUT)
    singles = steps[np.argsort(-values(steps))]
    path = [singles[0]]
    while len(path) < LONGEST:
        longer = path[-1] + singles[:TRIED]
        path.append(longer[int(np.argmax(values(longer)))])
    return singles, path
