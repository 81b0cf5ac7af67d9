"""tta and zero: the answers to several views of each image, merged. Nothing is learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.engine.events import Step
from soda_tta.engine.work import Work
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method
from soda_tta.methods.tools import in_order
from soda_tta.objectives import entropy, mutual_information
from soda_tta.randomness import RandomStream, generator
from soda_tta.settings import setting
from soda_tta.types import Array

MERGES = ("mean", "geometric", "majority")
SHIFTED = 16  # the side of an image divided by this: 2 of 32 pixels, 14 of 224
LARGE = 64  # pixels; larger images are cropped as in training on ImageNet, smaller ones less
RATIO = 3 / 4  # of the sides of a crop, at most this far from 1
FIXED = 10  # views that are the same in every run; more are random crops
VIEWS_AT_ONCE = 256  # images per call of the box


@dataclass(frozen=True, kw_only=True)
class Augmentation(Method):
    """The image itself is the first view.

    Two views add the mirror image; ten are five shifts of the image and of its mirror image; more
    are random crops, half of them mirrored. `majority` is ZERO: the class that most of the
    confident views choose. A tie goes to the most confident view, which is our rule.
    """

    views: int = setting(10, "views of each image; each costs one query, the first one included")
    merge: str = setting("mean", "mean, geometric, or majority of the most confident views")
    kept: float = setting(0.3, "share of the views that vote; for majority only")
    area: float = setting(
        0.0, "least area of a random crop, as a share; 0: 0.08, or 0.5 up to 64 pixels per side"
    )
    batch: int = setting(32, "images whose views are sent together")

    def __post_init__(self) -> None:
        if self.merge not in MERGES:
            raise MethodError(f"merge {self.merge!r} is unknown; choose {' or '.join(MERGES)}.")
        if self.views < 2 or self.batch < 1:
            raise MethodError(f"{self.name} needs views >= 2 and batch >= 1.")
        if not (0 < self.kept <= 1 and 0 <= self.area <= 1):
            raise MethodError(f"{self.name} needs kept in (0, 1] and area in [0, 1].")

    def queries(self, images: int) -> dict[str, int]:
        """One query per image and further view."""
        return {"probe": images * (self.views - 1)}

    def answer(self, work: Work) -> Array:
        """Merge the answers to all views."""
        box = work.asking("probe")
        answers = np.empty_like(work.before)
        places = list(in_order(len(work.images), self.batch))
        for number, place in enumerate(places, start=1):
            images = work.images[place]
            rows = [work.before[place]]
            waiting: list[Array] = []
            for view in range(1, self.views):
                waiting.append(self.view(images, view, work.seed, number))
                if len(waiting) * len(images) >= VIEWS_AT_ONCE or view == self.views - 1:
                    responses = box(np.concatenate(waiting))
                    rows += np.split(responses, len(waiting))
                    waiting = []
            answers[place] = self.merged(np.array(rows))
            work.record(
                Step(
                    epoch=1,
                    step=number,
                    of=len(places),
                    lr=0.0,
                    purpose="probe",
                    queries=len(images) * (self.views - 1),
                    losses=(float(entropy(answers[place]).mean()),),
                    mutual_information=mutual_information(answers[place]),
                    cross_entropy=0.0,
                )
            )
        return answers

    def view(self, images: Array, number: int, seed: int, batch: int) -> Array:
        """One further view of each image of a batch."""
        if self.views <= FIXED:
            across, mirrored = divmod(number, 2)
            seen = shifted(images, across)
            return np.ascontiguousarray(seen[..., ::-1]) if mirrored else seen
        least = self.area or (0.08 if min(images.shape[2:]) > LARGE else 0.5)
        random = generator(seed, RandomStream.VIEWS, batch, number)
        return random_crops(images, least, random)

    def merged(self, rows: Array) -> Array:
        """One answer from the answers (views, images, classes) to all views."""
        exact = np.asarray(rows, np.float64)
        if self.merge == "majority":
            return majority(exact, self.kept).astype(np.float32)
        if self.merge == "geometric":
            mean = np.exp(np.log(exact + 1e-10).mean(axis=0))
            return np.asarray(mean / mean.sum(axis=1, keepdims=True), np.float32)
        return np.asarray(exact.mean(axis=0), np.float32)


def shifted(images: Array, corner: int) -> Array:
    """The images moved towards a corner (1 to 4) with a reflected border; 0 leaves them.

    >>> shifted(np.arange(16.0).reshape(1, 1, 4, 4), 1)[0, 0, 0].tolist()
    [5.0, 4.0, 5.0, 6.0]
    """
    if corner == 0:
        return images
    height, width = images.shape[2:]
    down = max(1, height // SHIFTED)
    right = max(1, width // SHIFTED)
    wide = np.pad(images, ((0, 0), (0, 0), (down, down), (right, right)), mode="reflect")
    top = 2 * down * ((corner - 1) // 2)
    left = 2 * right * ((corner - 1) % 2)
    return np.ascontiguousarray(wide[:, :, top : top + height, left : left + width])


def random_crops(images: Array, least: float, random: np.random.Generator) -> Array:
    """A random window of each image, stretched to the image's size; half of them mirrored."""
    import torch
    from torch.nn import functional

    count = len(images)
    area = random.uniform(least, 1, count)
    ratio = np.exp(random.uniform(np.log(RATIO), -np.log(RATIO), count))
    height = np.minimum(1, np.sqrt(area / ratio))
    width = np.minimum(1, np.sqrt(area * ratio))
    # a window of this share of [-1, 1], with its centre where it fits
    down = random.uniform(-1, 1, count) * (1 - height)
    right = random.uniform(-1, 1, count) * (1 - width)
    mirrored = np.where(random.random(count) < 0.5, -1, 1)
    windows = np.zeros((count, 2, 3), np.float32)
    windows[:, 0, 0] = width * mirrored
    windows[:, 0, 2] = right
    windows[:, 1, 1] = height
    windows[:, 1, 2] = down
    with torch.inference_mode():
        grid = functional.affine_grid(
            torch.from_numpy(windows), list(images.shape), align_corners=False
        )
        views = functional.grid_sample(
            torch.from_numpy(np.ascontiguousarray(images)),
            grid,
            padding_mode="border",
            align_corners=False,
        )
    cropped: Array = views.clamp(0, 1).numpy()
    return cropped


def majority(rows: Array, kept: float) -> Array:
    """ZERO: the votes of the most confident views, as shares.

    >>> rows = np.array([[[0.9, 0.1]], [[0.2, 0.8]], [[0.6, 0.4]], [[0.5, 0.5]]])
    >>> majority(rows, kept=0.5).tolist()  # a tie: the first view is the most confident
    [[0.6, 0.4]]
    """
    views, count, classes = rows.shape
    order = np.argsort(entropy(rows), axis=0, kind="stable")
    voting = order[: max(1, round(kept * views))]
    votes = np.zeros((count, classes))
    for chosen in voting:
        classes_chosen = rows[chosen, np.arange(count)].argmax(axis=1)
        votes[np.arange(count), classes_chosen] += 1
    best = rows[voting[0], np.arange(count)].argmax(axis=1)
    tied = votes[np.arange(count), best] == votes.max(axis=1)
    votes[np.arange(count)[tied], best[tied]] += 0.5
    shares: Array = votes / votes.sum(axis=1, keepdims=True)
    return shares


tta = Augmentation(
    name="tta", summary="Test-time augmentation: the mean answer to several views of each image."
)
zero = Augmentation(
    name="zero",
    summary="ZERO: 64 random views, and the majority of the most confident ones.",
    views=64,
    merge="majority",
)
