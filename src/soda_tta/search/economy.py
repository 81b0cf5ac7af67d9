"""The search of soda-e: pursuit, then evolution, with a cache of the responses already received.

It is pure ask/tell. `ask` returns a question (which parameters on which images) or None at the end;
`tell` takes the probabilities. It can be paused after any question, saved with `state` and
restored, so that a live stream can drive it at its own pace. A batch run resumes without that: it
replays its transcript (`box/wrappers/recorded.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from soda_tta.randomness import RandomStream, generator
from soda_tta.search.cache import Cache
from soda_tta.search.deck import Deck
from soda_tta.search.evolution import Evolution, EvolutionSearch
from soda_tta.search.pursuit import Pursuit
from soda_tta.search.question import Question, Round
from soda_tta.types import Array

CHECK_EVERY = 4  # generations between two checks on images held out from evolution
STAGES = ("pursuit", "evolution", "done")
COUNTS = ("spent", "reported", "rounds", "generations", "cut_short")  # kept in a state
HELD_OUT = 3  # one in so many images is held out from evolution


@dataclass(frozen=True, kw_only=True)
class EconomySettings:
    """What an `EconomySearch` needs apart from the data.

    Parameters
    ----------
    pursuit, evolution : the settings of the two stages.
    moves : the moves that pursuit may make, one per row.
    units : first deviation of each parameter in evolution, relative to sigma.
    batch : images per round.
    queries : the most queries to spend.
    loss_of_each : probabilities of a batch, and the places of its images, to one loss per
        independent image; pursuit minimises their mean.
    loss : probabilities of a batch to one loss; evolution minimises it.
    seed : everything random follows from it.
    kept_back : queries that evolution must leave unspent.
    """

    pursuit: Pursuit
    evolution: Evolution
    moves: Array
    units: Array
    batch: int
    queries: int
    loss_of_each: Callable[[Array, Array], Array]
    loss: Callable[[Array], float]
    seed: int = 0
    kept_back: int = 0


class EconomySearch:
    """Pursuit, then evolution while held-out images gain.

    Parameters
    ----------
    settings : see `EconomySettings`.
    before : the responses to the images of the search as they are, (images, classes); they are
        known already and are not asked for again.
    """

    def __init__(self, settings: EconomySettings, before: Array) -> None:
        self.settings = settings
        self.count = len(before)
        self.classes = before.shape[1]
        start = np.zeros(settings.moves.shape[1])
        self.cache = Cache(start, before)
        self.deck = Deck(self.count, settings.batch, settings.seed)
        self.pursuit = settings.pursuit.start(start, settings.moves)
        self.evolution: EvolutionSearch | None = None  # begins where pursuit ends
        self.evolution_start = start
        self.stage = "pursuit"  # then "evolution", then "done"
        self.theta = start  # the best parameters so far
        self.spent = 0
        self.reported = 0  # queries that completed rounds account for
        self.rounds = 0
        self.cut_short = False  # the budget ran out earlier than planned: queries were lost
        self.images: Array | None = None  # of the round of pursuit in progress
        self.score: float | None = None  # loss of `theta` on the held-out images
        self.generations = 0  # in the current block of evolution
        self.question: Question | None = None  # asked and not yet told

    def ask(self, left: int | None = None) -> Question | None:
        """The next question, or None when the search has ended.

        The same question is returned until its responses are told.

        Parameters
        ----------
        left : queries that the caller can still afford for the search; None for no limit.
        """
        if self.question is None and self.stage == "pursuit":
            self.question = self._next_of_pursuit(left)
        if self.question is None and self.stage == "evolution":
            self.question = self._next_of_evolution(left)
        return self.question

    def tell(self, probabilities: Array) -> Round | None:
        """Responses to the last question, (points, images, classes); a round that is complete."""
        question = self.question
        if question is None:
            raise ValueError("there is no question to be answered; call ask() first.")
        expected = (len(question.thetas), len(question.images), self.classes)
        if probabilities.shape != expected:
            raise ValueError(f"responses of shape {probabilities.shape}; expected {expected}.")
        self.question = None
        self.spent += question.queries
        if self.stage == "pursuit":
            return self._told_of_pursuit(question, probabilities)
        return self._told_of_evolution(question, probabilities)

    def known(self) -> tuple[Array, Array]:
        """Images whose responses at the final parameters are known, and those responses."""
        if not np.array_equal(self.theta, self.cache.theta):
            return np.zeros(0, int), np.zeros((0, self.classes), np.float32)
        return np.array(list(self.cache.rows)), np.array(list(self.cache.rows.values()))

    @property
    def pursued(self) -> Array:
        """Where pursuit ended; `theta` itself until evolution moves on."""
        return self.theta if self.evolution is None else self.evolution_start

    def _affordable(self, queries: int, left: int | None) -> bool:
        planned = self.spent + queries <= self.settings.queries
        within_budget = left is None or left >= queries
        self.cut_short |= planned and not within_budget
        return planned and within_budget

    def _complete_round(self, length: float, probabilities: Array) -> Round:
        losses = tuple(self.settings.loss(rows) for rows in probabilities)
        queries = self.spent - self.reported
        self.reported = self.spent
        self.rounds += 1
        return Round(length, losses, queries)

    # -- pursuit ---------------------------------------------------------------------------------

    def _next_of_pursuit(self, left: int | None) -> Question | None:
        if self.images is None:
            if self.pursuit.done:
                self._begin_evolution(self.theta)
                return None
            images = self.deck.deal()
            if not self._affordable(len(self.pursuit.ask()) * len(images), left):
                self._begin_evolution(self.theta)
                return None
            self.images = images
        missing = self.cache.missing(self.images)
        if len(missing):
            return Question(self.cache.theta[None], missing)
        return Question(self.pursuit.ask()[1:], self.images)

    def _told_of_pursuit(self, question: Question, probabilities: Array) -> Round | None:
        assert self.images is not None
        if len(self.cache.missing(self.images)):
            self.cache.add(question.images, probabilities[0])
            return None
        points = self.pursuit.ask()
        rows = np.concatenate([self.cache.of(self.images)[None], probabilities])
        loss_of_each = self.settings.loss_of_each
        self.pursuit.tell(np.array([loss_of_each(each, self.images) for each in rows]))
        self.theta = self.pursuit.theta
        chosen = np.flatnonzero((points == self.theta).all(axis=1))
        if len(chosen) and chosen[0] > 0:
            self.cache.move(self.theta, self.images, rows[chosen[0]])
        self.images = None
        return self._complete_round(self.pursuit.length, rows)

    # -- evolution -------------------------------------------------------------------------------

    @property
    def _held(self) -> Array:
        return np.arange(self.count)[: self.count // HELD_OUT]

    @property
    def _free(self) -> Array:
        return np.arange(self.count)[self.count // HELD_OUT :]

    @property
    def _block_cost(self) -> int:
        """Queries between two checks and of the checks around them, and what must be left."""
        settings = self.settings
        generations = CHECK_EVERY * settings.evolution.population * settings.batch
        return generations + 2 * len(self._held) + settings.kept_back

    def _begin_evolution(self, theta: Array) -> None:
        settings = self.settings
        self.stage = "evolution"
        self.evolution_start = theta
        self.evolution = settings.evolution.start(theta, units=settings.units, seed=settings.seed)

    def _next_of_evolution(self, left: int | None) -> Question | None:
        assert self.evolution is not None
        if self.score is None:
            if len(self._free) < self.settings.batch or not self._affordable(
                self._block_cost, left
            ):
                self.stage = "done"
                return None
            return Question(self.theta[None], self._held)
        if self.generations == CHECK_EVERY:
            return Question(self.evolution.theta[None], self._held)
        begins_block = self.generations == 0
        if begins_block and not self._affordable(self._block_cost, left):
            self.stage = "done"
            return None
        random = generator(self.settings.seed, RandomStream.GENERATIONS, self.evolution.count)
        images = np.sort(random.choice(self._free, self.settings.batch, replace=False))
        return Question(self.evolution.ask()[1:], images)

    def _told_of_evolution(self, question: Question, probabilities: Array) -> Round | None:
        assert self.evolution is not None
        if self.score is None:
            self.score = self.settings.loss(probabilities[0])
            return None
        if self.generations == CHECK_EVERY:
            self._check(self.settings.loss(probabilities[0]))
            return None
        losses = [self.settings.loss(rows) for rows in probabilities]
        self.evolution.tell([np.nan, *losses])  # the loss at the mean is not asked for
        self.generations += 1
        return self._complete_round(self.evolution.length, probabilities)

    def _check(self, score: float) -> None:
        """Keep the mean of evolution if held-out images gain; end the search if they do not."""
        assert self.score is not None and self.evolution is not None
        if score >= self.score:
            self.stage = "done"
            return
        self.theta = self.evolution.theta
        self.score = score
        self.generations = 0

    # -- pause and resume ------------------------------------------------------------------------

    def state(self) -> dict[str, Array]:
        """Everything that is needed to continue, by name."""
        arrays = {f"pursuit.{name}": array for name, array in self.pursuit.state().items()}
        arrays |= {f"cache.{name}": array for name, array in self.cache.state().items()}
        if self.evolution is not None:
            arrays |= {f"evolution.{name}": a for name, a in self.evolution.state().items()}
            arrays["evolution.start"] = self.evolution_start
        arrays["theta"] = self.theta
        arrays["images"] = np.zeros(0, np.int64) if self.images is None else self.images
        arrays["score"] = np.array(np.nan if self.score is None else self.score, np.float64)
        counts = [STAGES.index(self.stage), *(getattr(self, name) for name in COUNTS)]
        arrays["counts"] = np.array([*counts, self.deck.rounds], np.int64)
        return arrays

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a state; a question that was open is asked again."""
        self.pursuit.restore(part_of(state, "pursuit."))
        self.cache.restore(part_of(state, "cache."))
        if "evolution.start" in state:
            self._begin_evolution(state["evolution.start"])
            assert self.evolution is not None
            self.evolution.restore(part_of(state, "evolution."))
        self.theta = state["theta"]
        self.images = state["images"] if len(state["images"]) else None
        score = state["score"].item()
        self.score = None if np.isnan(score) else score
        stage, *counts, rounds = state["counts"].tolist()
        self.stage = STAGES[stage]
        for name, value in zip(COUNTS, counts, strict=True):
            setattr(self, name, value)
        self.cut_short = bool(self.cut_short)
        self.deck.restore(rounds)
        self.question = None


def part_of(state: dict[str, Array], prefix: str) -> dict[str, Array]:
    """The entries of a state below a prefix, without it."""
    return {
        name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)
    }
