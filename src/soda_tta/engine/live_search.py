"""A search over the restoration bank that takes a few queries at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from soda_tta.adaptors import BankAdaptor
from soda_tta.adaptors.parts import MIXED, units
from soda_tta.engine.live_pixels import as_floats
from soda_tta.engine.restored import idle_repairs
from soda_tta.objectives import information_against
from soda_tta.search import EconomySearch, EconomySettings, Question
from soda_tta.storage.named_arrays import Arrays, below, part_of
from soda_tta.types import Array

BATCH = 64  # images per round
IMAGES = 128  # to search on
ROUNDS = 8  # of pursuit after the first, at most
LOOKED_AT = 16  # images that tell whether a repair finds anything to do: one condition
FEWEST_MOVES = 3  # which a round of pursuit needs
TINY = 1e-9  # deviation of parameters that may not move
PREPARED_BYTES = 2**27  # of restored versions kept
MOST_INFORMATION = 1.5  # times the information of a certain answer: no image counts for more

Ask = Callable[[Array], Array]


def bounded_information(rows: Array, prior: Array | None = None) -> Array:
    """The contribution of each image to the mutual information, bounded; against a stated prior.

    A single confident answer of a class that is rare otherwise would count for many images. That is
    what someone would send who wants to steer a search.
    """
    most = MOST_INFORMATION * np.log(rows.shape[1])
    return np.asarray(np.clip(information_against(rows, prior), -most, most))


class LiveSearch:
    """Pursuit on some images, paused after every few queries.

    Parameters
    ----------
    method : soda-e: its moves and its pursuit.
    adaptor : the bank; its parameters are not used.
    images : uint8 array of shape (n, 3, height, width)
        The images to search on.
    before : array of shape (n, classes)
        The responses to them as they are.
    starts : array of shape (k, parameters)
        Where else to begin: what helped under other conditions, and recipes. One round on these
        comes first.
    seed : everything random follows from it.
    idle : which parts are repairs that find nothing to do in the images; None: not known yet. Moves
        of these cost no query.
    """

    def __init__(
        self,
        method: Any,
        adaptor: BankAdaptor,
        images: Array,
        before: Array,
        starts: Array,
        seed: int,
        idle: Array | None = None,
    ) -> None:
        self.adaptor = adaptor
        self.images = images
        self.before = before
        self.starts = starts
        self.seed = seed
        self.moves = method.moves()
        self.idle = self._idle_repairs() if idle is None else idle
        useful = self.moves[~self.moves[:, self.idle].any(axis=1)]
        self.moves = useful if len(useful) >= FEWEST_MOVES else self.moves
        self.prior = prior = method.class_shares(before.shape[1])
        pursuit = method.pursuit()
        batch = min(BATCH, method.batch, len(images))
        first, later = pursuit.candidates(len(self.moves))
        queries = batch * (first + ROUNDS * later) + len(images)
        settings = EconomySettings(
            pursuit=pursuit,
            evolution=method.evolution(),
            moves=self.moves,
            units=units() * self.moves.any(axis=0) + TINY,
            batch=batch,
            queries=queries,
            loss_of_each=lambda rows, places: -bounded_information(rows, prior),
            loss=lambda rows: -float(bounded_information(rows, prior).mean()),
            seed=seed,
            kept_back=queries,  # evolution converges on one set of images; a stream brings others
        )
        self.search = EconomySearch(settings, before)
        self.choosing = len(starts) > 0  # the round on the other starts is not over
        self.began_elsewhere = False  # at one of the starts
        self.answers: list[Array] = []  # to the first points of the question under way
        self.prepared: Array | None = None  # made when it is needed

    def _idle_repairs(self) -> Array:
        allowed = self.moves.any(axis=0)[: len(MIXED)].tolist()
        size = max(1, PREPARED_BYTES // self._prepared_bytes)
        few = self.images[:LOOKED_AT]
        pieces = (as_floats(few[place : place + size]) for place in range(0, len(few), size))
        return idle_repairs(self.adaptor, pieces, allowed)

    @property
    def _prepared_bytes(self) -> int:
        """Bytes of the restored versions of one image."""
        return int(4 * self.images[0].size * (1 + len(MIXED)))

    @property
    def theta(self) -> Array:
        """The best parameters so far."""
        return self.search.theta

    @property
    def rounds(self) -> int:
        """Rounds so far; the one on the starts counts if one of them is better."""
        return self.search.rounds + self.began_elsewhere

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to ask."""
        return self._question() is None

    def _question(self) -> Question | None:
        if self.choosing:
            return Question(self.starts, np.arange(self.search.settings.batch))
        return self.search.ask()

    def cost(self, most: int) -> int:
        """Queries of the next step, about `most`; 0 if the search has ended."""
        question = self._question()
        return 0 if question is None else len(self._points(question, most)) * len(question.images)

    def _points(self, question: Question, most: int) -> Array:
        size = max(1, most // len(question.images))
        return question.thetas[len(self.answers) :][:size]

    def step(self, ask: Ask, most: int) -> None:
        """Ask for the next few points."""
        question = self._question()
        assert question is not None
        points = self._points(question, most)
        mixed = self._mixed(points, question.images)
        rows = ask(mixed.reshape(-1, *mixed.shape[2:]))
        self.answers.extend(rows.reshape(len(points), len(question.images), -1))
        if len(self.answers) < len(question.thetas):
            return
        probabilities = np.array(self.answers)
        self.answers = []
        if self.choosing:
            self._choose(question.images, probabilities)
        else:
            self.search.tell(probabilities)

    def _choose(self, images: Array, probabilities: Array) -> None:
        """Begin at the start that gains most, if it gains beyond chance."""
        self.choosing = False
        before = bounded_information(self.before[images], self.prior)
        gains = np.array([bounded_information(rows, self.prior) - before for rows in probabilities])
        margins = gains.std(axis=1) / np.sqrt(len(images))
        best = int((gains.mean(axis=1) - margins).argmax())
        if gains[best].mean() > margins[best]:
            self.search.begin_at(self.starts[best], images, probabilities[best])
            self.began_elsewhere = True

    def _mixed(self, thetas: Array, places: Array) -> Array:
        if len(self.images) * self._prepared_bytes > PREPARED_BYTES:
            return self.adaptor.candidates(as_floats(self.images[places]), thetas)
        if self.prepared is None:
            reachable = self.moves.any(axis=0) | self.starts.any(axis=0)
            used = tuple(bool(part) for part in reachable[: len(MIXED)])
            self.prepared = self.adaptor.prepare(as_floats(self.images), used)
        return self.adaptor.mix(self.prepared[places], thetas)

    def state(self) -> Arrays:
        """Everything that is needed to continue, by name."""
        arrays = below("search.", self.search.state())
        arrays |= {"images": self.images, "before": self.before, "starts": self.starts}
        arrays["idle"] = self.idle
        counts = [self.choosing, self.began_elsewhere, self.seed]
        arrays["counts"] = np.array(counts, np.int64)
        if self.answers:
            arrays["answers"] = np.array(self.answers)
        return arrays

    @staticmethod
    def restored(method: Any, adaptor: BankAdaptor, state: Arrays) -> LiveSearch:
        """The search with a state."""
        choosing, began_elsewhere, seed = state["counts"].tolist()
        search = LiveSearch(
            method,
            adaptor,
            state["images"],
            state["before"],
            state["starts"],
            seed,
            state["idle"],
        )
        search.search.restore(part_of(state, "search."))
        search.choosing = bool(choosing)
        search.began_elsewhere = bool(began_elsewhere)
        search.answers = list(state.get("answers", []))
        return search
