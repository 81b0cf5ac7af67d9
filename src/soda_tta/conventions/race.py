"""Sequential halving: every candidate gets a few images, the better half gets more, and so on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from soda_tta.conventions.evidence import have_same_effect, information, share_ahead
from soda_tta.conventions.table import (
    OWN,
    Candidate,
    are_comparable,
    are_near,
    raises_contrast,
)
from soda_tta.types import Array

FEWEST_IMAGES = 8  # before candidates are compared
# Below this share of the most information, the best may be as wrong as the others. Chosen on
# ResNet-20 and MobileNet, see docs/research/conventions.md.
RECOGNISED = 0.45
SAME_CLASS = 0.9  # share of images, from which on two candidates may differ in confidence only
ALMOST_SAME_CLASS = 0.8  # share from which on more images are worth sending
MOSTLY_SAME_CLASS = 0.6  # share from which on the images' own statistics explain nothing more
RIVAL_IMAGES = 32
SURE = 0.99  # share of resampled sets of images in which the first must be ahead

# Sends the images of a slice in the way of a candidate; None if the model refuses them.
Ask = Callable[[Candidate, slice], Array | None]


class Runner:
    """A candidate in a race, and the responses it has received."""

    def __init__(self, candidate: Candidate, rows: Array | None = None) -> None:
        self.candidate = candidate
        self.rows = rows
        self.refused = False
        self.twins: list[str] = []  # names of candidates with the same effect

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def count(self) -> int:
        """The number of images sent so far."""
        return 0 if self.rows is None else len(self.rows)

    def score(self, count: int | None = None) -> float:
        """The mutual information of the first images and their classes, in nats."""
        if self.rows is None or self.refused:
            return -math.inf
        return float(information(self.rows[:count])[0])

    def run(self, ask: Ask, count: int) -> None:
        """Send images until this runner has `count` responses."""
        if self.refused or self.count >= count:
            return
        rows = ask(self.candidate, slice(self.count, count))
        if rows is None:
            self.refused = True
        else:
            self.rows = rows if self.rows is None else np.concatenate([self.rows, rows])


@dataclass(frozen=True)
class Finish:
    """How a race ended."""

    best: Runner
    runner_up: Runner | None  # the best of those with another effect; None: there is no other
    share_ahead: float  # of resampled sets of images in which the best is ahead of the runner-up
    runners: list[Runner]

    @property
    def recognised(self) -> float:
        """The information in the responses to the best, as a share of the most there can be."""
        rows = self.best.rows
        return 0.0 if rows is None else self.best.score() / math.log(max(2, min(rows.shape)))

    @property
    def sure(self) -> bool:
        """Whether the model recognises something, and the best is ahead in nearly all samples."""
        ahead = self.runner_up is None or self.share_ahead >= SURE
        return ahead and self.recognised >= RECOGNISED and not self.only_more_confident

    @property
    def only_more_confident(self) -> bool:
        """Whether the best may be ahead only because more contrast makes a model more confident."""
        other = self.runner_up
        if other is None or not raises_contrast(self.best.candidate, other.candidate):
            return False
        return self.same_class >= SAME_CLASS

    @property
    def same_class(self) -> float:
        """Share of the images that get the same class in the way of the runner-up."""
        if self.runner_up is None or self.runner_up.rows is None or self.best.rows is None:
            return 1.0
        pairs = zip(self.best.rows, self.runner_up.rows, strict=False)
        return float(np.mean([first.argmax() == second.argmax() for first, second in pairs]))


def race(candidates: Sequence[Candidate], ask: Ask, images: int, queries: int) -> Finish | None:
    """Find the best of several candidates; None if the model refuses all of them.

    Parameters
    ----------
    candidates : sequence of Candidate
        In order of preference between those with the same effect.
    ask : callable
    images : int
        The most images to send in the way of one candidate.
    queries : int
        The most queries in all.
    """
    runners = [Runner(candidate) for candidate in candidates]
    preference = {id(runner): place for place, runner in enumerate(runners)}
    alive = list(runners)
    for share, count in rounds(len(runners), images, queries):
        for runner in alive:
            runner.run(ask, count)
        alive = [runner for runner in alive if not runner.refused]
        alive = without_twins(ranked(alive), preference)[:share]
    if not alive:
        return None
    best, *others = alive
    others += ranked([each for each in runners if not each.refused and each is not best])
    others = [each for each in others if not are_alike(best, each)]
    return finish(best, rival_of(best, others, ask), runners)


def rival_of(best: Runner, others: list[Runner], ask: Ask) -> Runner | None:
    """Who the best is compared with: one that it only exceeds in contrast, or else the second.

    More contrast makes a model more confident, right or wrong, and so raises the information. A
    candidate with less contrast and the same classes may be the true one even if it came last.

    Parameters
    ----------
    best : Runner
    others : list of Runner
        The best of them first.
    ask : callable
    """
    for other in others:
        if not raises_contrast(best.candidate, other.candidate):
            continue
        if finish(best, other, []).same_class >= ALMOST_SAME_CLASS:
            other.run(ask, min(RIVAL_IMAGES, best.count))
        if not other.refused and finish(best, other, []).only_more_confident:
            return other
    return next((other for other in others if not other.refused), None)


def finish(best: Runner, runner_up: Runner | None, runners: list[Runner]) -> Finish:
    """The end of a race between two; they are compared on the images that both got."""
    if runner_up is None or runner_up.rows is None or best.rows is None:
        return Finish(best, None, 1.0, runners)
    count = min(best.count, runner_up.count)
    ahead = share_ahead(best.rows[:count], runner_up.rows[:count])
    return Finish(best, runner_up, ahead, runners)


def rounds(candidates: int, images: int, queries: int) -> Iterator[tuple[int, int]]:
    """For each round, how many candidates survive it and how many images each has got by then.

    >>> list(rounds(16, images=128, queries=640))
    [(8, 10), (4, 30), (2, 70), (2, 128)]
    >>> list(rounds(2, images=128, queries=640))
    [(2, 128)]
    """
    alive, count = candidates, 0
    stages = max(1, math.ceil(math.log2(max(candidates, 2))))
    left = queries
    for stage in range(stages, 0, -1):
        more = max(FEWEST_IMAGES if count == 0 else 0, left // stage // alive)
        more = min(more, images - count, left // alive)
        count += more
        left -= more * alive
        alive = max(2, math.ceil(alive / 2)) if alive > 1 else 1
        yield alive, count


def ranked(runners: list[Runner]) -> list[Runner]:
    """The best first; those with responses to more images before the others."""
    return sorted(runners, key=lambda runner: (-runner.count, -runner.score()))


def are_alike(first: Runner, second: Runner) -> bool:
    """Whether it hardly matters which of the two is chosen."""
    if are_near(first.candidate, second.candidate) or follows_images(first, second):
        return True
    assert first.rows is not None and second.rows is not None
    return have_same_effect(first.rows, second.rows)


def only_reordered(first: Runner, second: Runner) -> bool:
    """Whether the two differ in the channel order only, which grey images do not tell."""
    return first.name.rpartition(", ")[0] == second.name.rpartition(", ")[0] != ""


def follows_images(first: Runner, second: Runner) -> bool:
    """Whether one of them is the statistics of the images, and the other gives mostly the same.

    Statistics of shifted images undo a part of the shift. That does not make them what the model
    was trained with.
    """
    own = [runner.name.startswith(OWN) for runner in (first, second)]
    if own[0] == own[1] or not are_comparable(first.candidate, second.candidate):
        return False
    return finish(first, second, []).same_class >= MOSTLY_SAME_CLASS


def without_twins(runners: list[Runner], preference: dict[int, int]) -> list[Runner]:
    """One runner of each group that hardly differs: the more usual one, if they are near.

    Parameters
    ----------
    runners : list of Runner
        The best first.
    preference : dict
        The place of each in the table, by id.
    """
    kept: list[Runner] = []
    for runner in runners:
        twin = next((each for each in kept if are_alike(each, runner)), None)
        if twin is None:
            kept.append(runner)
            continue
        usual = (
            are_near(twin.candidate, runner.candidate)
            or follows_images(twin, runner)
            or only_reordered(twin, runner)
        )
        preferred = usual and preference[id(runner)] < preference[id(twin)]
        first, second = (runner, twin) if preferred else (twin, runner)
        first.twins = [*first.twins, second.name, *second.twins]
        kept[kept.index(twin)] = first
    return kept


def challenge(champion: Runner, candidates: Sequence[Candidate], ask: Ask, images: int) -> Finish:
    """Whether a candidate is surely better than what is usual; if not, the usual stays.

    Parameters
    ----------
    champion : Runner
        The usual way, with its responses.
    candidates : sequence of Candidate
        The other ways.
    ask : callable
    images : int
        The most images to send in the way of the best of them.
    """
    others = [Runner(candidate) for candidate in candidates]
    first = images if len(others) == 1 else images // 4
    for runner in others:
        runner.run(ask, first)
    alive = ranked([runner for runner in others if not runner.refused])
    runners = [champion, *others]
    if not alive:
        return Finish(champion, None, 1.0, runners)
    best = alive[0]
    best.run(ask, images)
    if are_alike(champion, best):
        champion.twins = [best.name]
        return Finish(champion, None, 1.0, runners)
    changed = finish(best, champion, runners)
    return changed if changed.sure else finish(champion, best, runners)
