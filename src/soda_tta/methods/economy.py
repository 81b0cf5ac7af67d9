"""soda-e: choose among restorations of the images by few queries, and deploy the choice only if it is sure to help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from soda_tta.adaptors import Bank, BankAdaptor
from soda_tta.adaptors.parts import MIXED, moves, units
from soda_tta.box import Box, left_to_spend
from soda_tta.engine.events import Step
from soda_tta.errors import MethodError
from soda_tta.judging.verdict import judge, moved
from soda_tta.methods.method import Method, Outcome, Work, in_order
from soda_tta.objectives.equations import information_of_each, mutual_information
from soda_tta.search import Evolution, Pursuit
from soda_tta.types import Array

SETS, ORDER, GENERATIONS = 11, 12, 13  # streams of randomness
ROUNDS = 6  # rounds of pursuit a budget is laid out for
FEWEST_IMAGES = 24  # a round of fewer tells nothing
MOST_IMAGES = (
    384  # searched on; their restored versions are made once, which takes the time of some queries
)
PREPARED_BYTES = 2**28  # of restored versions kept at once
ASKED_AT_ONCE = 256  # images a question: enough for every worker of a server
ASKED_BYTES = (
    2**25
)  # of images a question: memory of more is not used again, and making it ready takes its time
TINY = 1e-9
CHECK_EVERY = 4  # generations between two looks at images held out from evolution


class Sizes(NamedTuple):
    """How a budget is laid out: images judged on, images a round, queries of the search."""

    judged: int
    batch: int
    probe: int


@dataclass(frozen=True, kw_only=True)
class Economy(Method):
    """The restoration bank, searched by mutual information on a part of the images, judged on others.

    Its cost does not grow with the number of images: about 12,000 queries of search by default, whatever their number;
    a larger budget goes on with CMA-ES until images held out from it see no gain. The adaptor is adopted only if the
    information shared by two looks at images the search never saw rises beyond chance (`level`).
    """

    name: str = "soda-e"
    summary: str = "Few queries: restorations of the images, chosen by pursuit, with a verdict."
    needs: str = "probabilities"
    batch: int = 128  # images a round, at most
    judged: int = 1000  # images the verdict is passed on, at most
    level: float = 0.01  # rate of wrong adoptions
    tried: int = 8  # moves a round
    caution: float = 1.0  # standard errors a move must gain
    population: int = 12  # of CMA-ES, where the budget reaches for it
    sigma: float = 0.15
    without: str = (
        ""  # families of parts to leave alone, such as "colour" where colours mean something
    )
    average: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 < self.level < 0.5 and self.judged >= 10 and self.batch >= FEWEST_IMAGES):
            raise MethodError(
                f"{self.name} needs level in (0, 0.5), judged >= 10 and batch >= {FEWEST_IMAGES}."
            )
        self.pursuit(), self.evolution(), self.moves()  # refuse impossible settings

    def idle(self) -> tuple[str, ...]:
        return ("epochs",)

    def counted(self, images: int) -> int:
        return 0

    def pursuit(self) -> Pursuit:
        return Pursuit(tried=self.tried, caution=self.caution)

    def moves(self) -> Array:
        """The moves of the bank, but for families left alone."""
        return moves(tuple(name.strip() for name in self.without.split(",") if name.strip()))

    def evolution(self) -> Evolution:
        return Evolution(population=self.population, sigma=self.sigma)

    def queries(self, images: int) -> dict[str, int]:
        return self.within(images, None)

    def within(self, images: int, limit: int | None) -> dict[str, int]:
        sizes = self.sizes(images, limit)
        if sizes is None:
            return {}
        return {"probe": sizes.probe, "judge": 2 * sizes.judged, "evaluate": images}

    def sizes(self, images: int, limit: int | None) -> Sizes | None:
        """How to spend what a limit leaves beside the first look and the answer; None if that is too little."""
        judged = min(
            self.judged, max(images // 4, images - MOST_IMAGES - self.batch)
        )  # what the search can spare
        first, later = self.pursuit().candidates(len(self.moves()))
        wanted = first + (ROUNDS - 1) * later  # queries an image and search
        largest = min(self.batch, images - judged)
        if limit is None:
            return (
                Sizes(judged, largest, wanted * largest)
                if judged >= 10 and largest >= FEWEST_IMAGES
                else None
            )
        left = limit - 2 * images
        judged = min(judged, left // 8)
        probe = left - 2 * judged
        batch = min(largest, max(FEWEST_IMAGES, probe // wanted))
        enough = judged >= 10 and largest >= FEWEST_IMAGES and probe >= batch * (first + later)
        return Sizes(judged, batch, probe) if enough else None

    def adapt(self, given: Work) -> Outcome:
        sizes = self.sizes(len(given.images), given.ledger.limit)
        if sizes is None:
            return Outcome(given.before, reason=self.outline(len(given.images), given.ledger.limit))
        order = np.random.default_rng([given.seed, SETS]).permutation(len(given.images))
        held, free = order[: sizes.judged], order[sizes.judged :]
        search = Search(self, given, sizes, free)
        theta = search.pursue()
        theta = search.evolve(theta)
        adaptor = search.adaptor
        adaptor.parameters = theta.astype(np.float32)
        if not theta.any():
            reason = f"{search.length_told}; no change of the images helped, and the model's own answers are kept."
            return Outcome(given.before, reason=reason, short=search.cut_short)
        held = np.sort(held)
        after, before_aside, after_aside = looks(given, adaptor, held)
        verdict = judge(
            before=(given.before[held], before_aside), after=(after, after_aside), level=self.level
        )
        if not verdict.adopt:
            reason = f"{search.length_told}; the verdict is to keep."
            return Outcome(given.before, verdict=verdict, reason=reason, short=search.cut_short)
        known = np.full(given.before.shape, np.nan, np.float32)
        known[held] = after
        seen, rows = search.known(theta)
        known[seen] = rows
        reason = f"{search.length_told}; the verdict is to adopt."
        return Outcome(None, adaptor, verdict, known, reason, search.cut_short)

    def outline(self, images: int, limit: int | None) -> str:
        sizes = self.sizes(images, limit)
        if sizes is not None:
            first, later = self.pursuit().candidates(len(self.moves()))
            rounds = 1 + min(ROUNDS - 1, max(0, sizes.probe // sizes.batch - first) // later)
            beyond = sizes.probe - sizes.batch * (first + (ROUNDS - 1) * later)
            more = (
                ""
                if beyond < self.population * sizes.batch
                else ", then CMA-ES while held-out images gain"
            )
            return f"{rounds} rounds on {sizes.batch} images each{more}; a verdict on {sizes.judged} others"
        needed = next((q for q in range(3, 1000) if self.sizes(images, q * images)), None)
        if limit is None or needed is None:
            return f"{images} images are too few to search on and to judge by; the model's own answers are kept."
        return (
            f"{limit / images:g} queries an image leave too little to search by; the model's own answers are kept. "
            f"From {needed} on there is enough."
        )


def looks(given: Work, adaptor: BankAdaptor, held: Array) -> list[Array]:
    """The model's answers to the adapted images, to the images moved a little, and to the adapted ones moved alike."""
    evaluate, aside = given.asking("evaluate"), given.asking("judge")
    rows = []
    for place in in_order(len(held), given.images.at_once):
        images = given.images[held[place]]
        adapted = adaptor(images)
        rows.append((evaluate(adapted), aside(moved(images)), aside(moved(adapted))))
    return [np.concatenate(each) for each in zip(*rows, strict=True)]


class Search:
    """The search of one run: its images, their restored versions, and every answer that is already paid."""

    def __init__(self, settings: Economy, given: Work, sizes: Sizes, free: Array) -> None:
        self.settings, self.given, self.sizes = settings, given, sizes
        self.adaptor: BankAdaptor = Bank.for_size(given.images.size).build()
        self.box: Box = given.asking("probe")
        height, width = given.images.size
        self.image_bytes = 4 * 3 * height * width
        most = max(
            sizes.batch, min(MOST_IMAGES, PREPARED_BYTES // (self.image_bytes * (1 + len(MIXED))))
        )
        self.places = np.sort(free[:most])
        tried = tuple(bool(column.any()) for column in settings.moves().T[: len(MIXED)])
        self.tried = tried  # not what is left alone
        fits = len(self.places) * self.image_bytes * (1 + len(MIXED)) <= PREPARED_BYTES
        self.prepared = self.adaptor.prepare(given.images[self.places], tried) if fits else None
        self.spent = self.told = self.rounds = 0
        self.cut_short = False  # by requests that were lost, and count against the budget
        # answers at the current parameters, for the images that have been asked there
        self.at = np.zeros(self.adaptor.parameters.size)
        self.rows = {index: given.before[place] for index, place in enumerate(self.places)}
        self.order = np.random.default_rng([given.seed, ORDER])
        self.waiting: list[int] = []

    def pursue(self) -> Array:
        search = self.settings.pursuit().start(self.at, self.settings.moves())
        while not search.done:
            points = search.ask()
            indices = self.take()
            if not self.affordable(len(points) * len(indices)):
                break
            base = self.current(indices)
            answers = np.concatenate([base[None], self.ask(points[1:], indices)])
            search.tell(np.array([-information_of_each(rows) for rows in answers]))
            chosen = np.flatnonzero((points == search.theta).all(axis=1))
            if len(chosen) and chosen[0] > 0:
                self.move(search.theta, indices, answers[chosen[0]])
            self.report(search.length, answers)
        return search.theta

    def evolve(self, theta: Array) -> Array:
        """Go on by CMA-ES with what is left, as long as images held out from it gain."""
        population, batch = self.settings.population, self.sizes.batch
        held = np.arange(len(self.places))[: len(self.places) // 3]
        rest = np.arange(len(self.places))[len(held) :]
        cost = CHECK_EVERY * population * batch + 2 * len(held)
        if len(rest) < batch or not self.affordable(cost):
            return theta
        scales = (
            units() * self.settings.moves().any(axis=0) + TINY
        )  # what is left alone does not move
        search = self.settings.evolution().start(theta, scales, self.given.seed)
        best, score = theta, mutual_information(self.ask(theta[None], held)[0])
        generation = 0
        while self.affordable(cost):
            for _ in range(CHECK_EVERY):
                indices = np.sort(
                    np.random.default_rng([self.given.seed, GENERATIONS, generation]).choice(
                        rest, batch, replace=False
                    )
                )
                answers = self.ask(search.ask(), indices)
                search.tell([-mutual_information(rows) for rows in answers])
                generation += 1
                self.report(search.length, answers)
            gained = mutual_information(self.ask(search.theta[None], held)[0])
            if gained <= score:
                break
            best, score = search.theta, gained
        return best

    def take(self) -> Array:
        """The images of a round: all come before one comes again."""
        if len(self.waiting) < self.sizes.batch:
            self.waiting = list(self.order.permutation(len(self.places)))
        taken = [self.waiting.pop() for _ in range(min(self.sizes.batch, len(self.waiting)))]
        return np.sort(np.array(taken))

    def current(self, indices: Array) -> Array:
        """The answers at the current parameters; asks only for what is not known."""
        unknown = np.array([index for index in indices if index not in self.rows], int)
        if len(unknown):
            self.rows.update(
                zip(unknown.tolist(), self.ask(self.at[None], unknown)[0], strict=True)
            )
        return np.array([self.rows[index] for index in indices])

    def move(self, theta: Array, indices: Array, rows: Array) -> None:
        self.at, self.rows = theta, dict(zip(indices.tolist(), rows, strict=True))

    def known(self, theta: Array) -> tuple[Array, Array]:
        """Images whose answers at these parameters are paid, and the answers."""
        if not np.array_equal(theta, self.at):
            return np.zeros(0, int), np.zeros((0, self.given.before.shape[1]), np.float32)
        return self.places[list(self.rows)], np.array(list(self.rows.values()))

    def affordable(self, queries: int) -> bool:
        left = left_to_spend(self.given.ledger, self.given.transcript)
        reserve = len(self.given.images) + 2 * self.sizes.judged
        planned, reached = (
            self.spent + queries <= self.sizes.probe,
            left is None or left - reserve >= queries,
        )
        self.cut_short |= planned and not reached
        return planned and reached

    def ask(self, thetas: Array, indices: Array) -> Array:
        """Answers of each candidate for each image."""
        if self.prepared is not None:
            answers = self._mixed(
                self.prepared if len(indices) == len(self.places) else self.prepared[indices],
                thetas,
            )
        else:  # large images are restored again for every question, as many as are asked about together
            some = max(1, ASKED_BYTES // self.image_bytes)
            parts = []
            for place in in_order(len(indices), some):
                images = self.given.images[self.places[indices[place]]]
                parts.append(self._mixed(self.adaptor.prepare(images, self.tried), thetas))
            answers = np.concatenate(parts, axis=1)
        self.spent += len(thetas) * len(indices)
        return answers

    def _mixed(self, prepared: Array, thetas: Array) -> Array:
        """Asked some candidates at a time: a kill loses little, and not all need be in memory together."""
        most = min(ASKED_AT_ONCE, ASKED_BYTES // self.image_bytes)
        some = max(1, most // max(1, len(prepared)))
        answers = []
        for start in range(0, len(thetas), some):
            adapted = self.adaptor.mix(prepared, thetas[start : start + some])
            answers.append(self.box(adapted.reshape(-1, *adapted.shape[2:])))
        return np.concatenate(answers).reshape(len(thetas), len(prepared), -1)

    @property
    def length_told(self) -> str:
        return f"{self.rounds} rounds of search{', cut short by lost requests' if self.cut_short else ''}"

    def report(self, length: float, answers: Array) -> None:
        self.rounds += 1
        losses = tuple(-mutual_information(rows) for rows in answers)
        queries, self.told = self.spent - self.told, self.spent  # known answers are not asked for
        self.given.tell(Step(self.rounds, 1, 1, length, "probe", queries, losses, -losses[0], 0.0))


soda_e = Economy()
