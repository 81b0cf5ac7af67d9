"""The search of soda-e: pursuit, then evolution, with a cache of the responses already received.

It is pure ask/tell. `ask` returns a question (which parameters on which images) or None at the end;
`tell` takes the probabilities. It can be paused after any question, saved with `state` and
restored, so that a live stream can drive it at its own pace. A batch run resumes without that: it
replays its transcript (`box/wrappers/recorded.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from soda_tta.randomness import RandomStream, generator
from soda_tta.search.cache import Cache
from soda_tta.search.deck import Deck
from soda_tta.search.economy_settings import EconomySettings
from soda_tta.search.evolution import EvolutionSearch
from soda_tta.search.question import Question, Round
from soda_tta.search.race import Race, queries_of, spread
from soda_tta.storage.named_arrays import below, part_of
from soda_tta.types import Array

CHECK_EVERY = 4  # generations between two checks on images held out from evolution
STAGES = ("pursuit", "evolution", "done")
COUNTS = ("spent", "reported", "rounds", "generations", "cut_short")  # kept in a state
HELD_OUT = 3  # one in so many images is held out from evolution


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
        self.pursuit = settings.pursuit.start(start, settings.moves, settings.starts)
        self.evolution: EvolutionSearch | None = None  # begins where pursuit ends
        self.evolution_start = start
        self.stage = "pursuit"  # then "evolution", then "done"
        self.theta = start  # the best parameters so far
        self.spent = 0
        self.reported = 0  # queries that completed rounds account for
        self.rounds = 0
        self.cut_short = False  # the budget ran out earlier than planned: queries were lost
        self.race: Race | None = None  # the round of pursuit in progress
        self.score: float | None = None  # loss of `theta` on the held-out images
        self.generations = 0  # in the current block of evolution
        self.question: Question | None = None  # asked and not yet told

    def begin_at(self, theta: Array, images: Array, rows: Array) -> None:
        """Begin elsewhere than at the images as they are; some responses there are known."""
        self.theta = np.array(theta, np.float64)
        self.pursuit = self.settings.pursuit.start(self.theta, self.settings.moves)
        self.cache.move(self.theta, images, rows)

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

    def ask_all(self, left: int | None = None) -> list[Question]:
        """The next question and, if it can be asked before the responses are told, the second.

        They are told one after the other, with `ask` in between.
        """
        question = self.ask(left)
        questions = [] if question is None else [question]
        if self.race is not None and len(self.cache.missing(self.race.images)):
            questions.append(self._next_of_race(self.race))
        return questions

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

    def _complete_round(self, length: float, probabilities: Iterable[Array]) -> Round:
        losses = tuple(self.settings.loss(rows) for rows in probabilities)
        queries = self.spent - self.reported
        self.reported = self.spent
        self.rounds += 1
        return Round(length, losses, queries)

    # -- pursuit ---------------------------------------------------------------------------------

    def _next_of_pursuit(self, left: int | None) -> Question | None:
        if self.race is None and (self.pursuit.done or not self._begin_race(left)):
            self._begin_evolution(self.theta)
            return None
        assert self.race is not None
        missing = self.cache.missing(self.race.images)
        if len(missing):
            return Question(self.cache.theta[None], missing)
        return self._next_of_race(self.race)

    def _next_of_race(self, race: Race) -> Question:
        """The rivals on the images of the next heat."""
        return Question(self.pursuit.ask()[1:][race.running], race.next_images)

    def _begin_race(self, left: int | None) -> bool:
        """Deal the images of a round, if it can be afforded."""
        images = spread(self.deck.deal())
        points = len(self.pursuit.ask())
        heats = self.pursuit.heats
        if not self._affordable(queries_of(points, len(images), heats), left):
            return False
        self.race = Race(images, points, self.classes, heats)
        return True

    def _told_of_pursuit(self, question: Question, probabilities: Array) -> Round | None:
        race = self.race
        assert race is not None
        if len(self.cache.missing(race.images)):
            self.cache.add(question.images, probabilities[0])
            return None
        race.tell(probabilities)
        gains, errors = self._gains(race)
        race.drop(gains)
        if not race.done:
            return None
        points = self.pursuit.ask()
        current = self.cache.of(race.images)
        # a rival that left the race early is not taken: it met fewer images
        finished = np.isin(np.arange(len(gains)), race.running)
        self.pursuit.tell_gains(gains, np.where(finished, errors, np.inf))
        self.theta = self.pursuit.theta
        chosen = np.flatnonzero((points[1:] == self.theta).all(axis=1) & finished)
        if len(chosen):
            self.cache.move(self.theta, race.images, race.rows[chosen[0]])
        self.race = None
        return self._complete_round(self.pursuit.length, [current, *race.rows])

    def _gains(self, race: Race) -> tuple[Array, Array]:
        """Of every rival over the current point, on the images it met: mean and standard error."""
        current = self.cache.of(race.images)
        gains = []
        errors = []
        for rows in race.rows:
            images = race.images[: len(rows)]
            before = self.settings.loss_of_each(current[: len(rows)], images)
            gain = before - self.settings.loss_of_each(rows, images)
            gains.append(gain.mean())
            errors.append(gain.std() / np.sqrt(len(gain)))
        return np.array(gains), np.array(errors)

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
        arrays = below("pursuit.", self.pursuit.state()) | below("cache.", self.cache.state())
        if self.evolution is not None:
            arrays |= below("evolution.", self.evolution.state())
            arrays["evolution.start"] = self.evolution_start
        arrays["theta"] = self.theta
        if self.race is not None:
            arrays["images"] = self.race.images
            arrays |= below("race.", self.race.state())
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
        self.race = None
        if "images" in state:
            points = len(self.pursuit.ask())
            self.race = Race(state["images"], points, self.classes, self.pursuit.heats)
            self.race.restore(part_of(state, "race."))
        score = state["score"].item()
        self.score = None if np.isnan(score) else score
        stage, *counts, rounds = state["counts"].tolist()
        self.stage = STAGES[stage]
        for name, value in zip(COUNTS, counts, strict=True):
            setattr(self, name, value)
        self.cut_short = bool(self.cut_short)
        self.deck.restore(rounds)
        self.question = None
