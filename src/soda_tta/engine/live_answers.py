"""How a live stream makes answers of responses: class weights from recent answers, and views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from soda_tta.adaptors import PLAIN, Answering, RoutedAdaptor
from soda_tta.adaptors.answering import VIEWS, moved
from soda_tta.engine.live_buffer import Item
from soda_tta.judging.prior_check import contradiction
from soda_tta.judging.view_check import objection
from soda_tta.objectives import class_weights
from soda_tta.storage.named_arrays import Arrays, as_array, from_array
from soda_tta.types import Array

FEWEST_MATCHED = 128  # answers through the current adaptors, to learn class weights from
RENEWED_EVERY = 64  # images
CHECKED = 64  # images on which views are compared, once per source
NO_BUDGET_HERE = "auto"  # of traffic that has no end there is no budget to have room


class LiveAnswers:
    """The answers to the images of one source.

    Class weights follow the recent answers. While the confident ones contradict the stated prior,
    answers are not matched to it: a camera may show one class for an hour.
    """

    def __init__(self) -> None:
        self.views: tuple[str, ...] | None = None  # None: not compared yet
        self.weights: Array | None = None
        self.renewed = 0  # when weights were last learned, in images of the source
        self.contradicts = False  # what the recent confident answers say of the prior

    @property
    def answering(self) -> Answering:
        """How the next responses become answers."""
        if not self.views and self.weights is None:
            return PLAIN
        return Answering(self.views or (), self.weights)

    def renew(self, rows: Array, prior: Array | None, arrived: int) -> str | None:
        """Learn class weights from recent answers; a sentence if the stated prior is in doubt.

        Parameters
        ----------
        rows : responses through the current adaptors.
        prior : the stated share of each class.
        arrived : images of the source so far.
        """
        self.renewed = arrived
        if prior is None or len(rows) < FEWEST_MATCHED:
            self.weights = None
            return None
        text = contradiction(rows, prior)
        is_new = text is not None and not self.contradicts
        self.contradicts = text is not None
        self.weights = None if self.contradicts else class_weights(rows, prior)
        return f"answers are not matched to it: {text}" if is_new else None

    def is_due(self, arrived: int) -> bool:
        """Whether there are enough new answers to learn weights again."""
        return arrived - self.renewed >= RENEWED_EVERY

    def needs_check(self, wanted: str, buffered: int) -> bool:
        """Whether views were asked for and can be compared now."""
        possible = wanted not in ("1", NO_BUDGET_HERE) and buffered >= CHECKED
        return possible and self.views is None

    def check(
        self,
        wanted: str,
        items: list[Item],
        shelf: RoutedAdaptor | None,
        ask: Callable[[Array], Array],
    ) -> list[str]:
        """Compare views on some images; return what speaks against those that are not used."""
        images = np.stack([item.pixels for item in items])
        adapted = images if shelf is None else shelf(images)
        plain, shifted = np.split(ask(np.concatenate([adapted, moved(adapted)])), 2)
        views: list[str] = []
        texts: list[str] = []
        for name in tuple(VIEWS)[: int(wanted) - 1]:
            rows = shifted if name == "shift" else ask(VIEWS[name](adapted))
            text = objection(name, plain, shifted, rows)
            if text is None:
                views.append(name)
            else:
                texts.append(text)
        self.views = tuple(views)
        return texts

    def state(self) -> Arrays:
        """Everything that is needed to continue, by name."""
        facts: dict[str, Any] = {"renewed": self.renewed, "contradicts": self.contradicts}
        facts["views"] = None if self.views is None else list(self.views)
        arrays = {"facts": as_array(facts)}
        return arrays if self.weights is None else {**arrays, "weights": self.weights}

    def restore(self, state: Arrays) -> None:
        """Continue from a state; that of an older version is empty."""
        if not state:
            return
        facts = from_array(state["facts"])
        self.renewed = facts["renewed"]
        self.contradicts = facts["contradicts"]
        self.views = None if facts["views"] is None else tuple(facts["views"])
        self.weights = state.get("weights")
