"""`apply`: a learned adaptor on new images, one query per image and view."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.adaptors.throughput import for_many, worth_compiling
from soda_tta.box import Box, Ledger, Meter, load_box
from soda_tta.box.like import load_box_like
from soda_tta.conditions.router import Routes
from soda_tta.data import Images, open_images
from soda_tta.data.resizing import size_text
from soda_tta.engine.events import Event, Listener, Notice, Planned, Responded, Waiting
from soda_tta.engine.passes import Pass
from soda_tta.engine.plan import Plan
from soda_tta.engine.progress import shown
from soda_tta.engine.run import most_likely
from soda_tta.engine.saved import SavedAdaptor, load_adaptor
from soda_tta.engine.work import Interrupted
from soda_tta.engine.working_size import at_working_size
from soda_tta.storage.atomic import write_text
from soda_tta.storage.partial_answers import PartialAnswers, partial_answers
from soda_tta.storage.spreadsheet import as_cell
from soda_tta.types import Array


@dataclass(frozen=True)
class Answers:
    """The model's answers to adapted images.

    Parameters
    ----------
    names : the name of every image.
    probabilities : one row per image; rows of NaN were not answered because of a stop.
    ledger : the queries spent.
    interrupted : whether the user asked to stop before all images were answered.
    routes : the condition of each image; None if the adaptor knows no conditions.
    """

    names: list[str]
    probabilities: Array
    ledger: Ledger
    interrupted: bool = False
    routes: Routes | None = None

    @property
    def predictions(self) -> Array:
        """The most likely class of every image; -1 for images that were not answered."""
        return most_likely(self.probabilities)

    @property
    def confidences(self) -> Array:
        """The probability of that class."""
        largest: Array = self.probabilities.max(axis=1)
        return largest

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per image: image, class, confidence; None where it was not answered.

        With conditions also condition, None if the image is unlike all of them, and distance.
        """
        columns = zip(self.names, self.predictions.tolist(), self.confidences.tolist(), strict=True)
        rows: list[dict[str, Any]] = []
        for name, best, confidence in columns:
            row = {"image": name, "class": best, "confidence": round(confidence, 6)}
            if math.isnan(confidence):
                row |= {"class": None, "confidence": None}
            rows.append(row)
        if self.routes is not None:
            for row, number, distance, familiar in zip(rows, *self.routes, strict=True):
                row["condition"] = int(number) if familiar else None
                row["distance"] = round(float(distance), 3)
        return rows

    def csv(self) -> str:
        """The rows as CSV, with a header."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        columns = ["image", "class", "confidence"]
        if self.routes is not None:
            columns += ["condition", "distance"]
        writer.writerow(columns)
        for row in self.rows():
            if row["confidence"] is not None:
                row["confidence"] = f"{row['confidence']:.6f}"
            row["image"] = as_cell(row["image"])
            writer.writerow([row[column] for column in columns])
        return buffer.getvalue()

    def json(self) -> str:
        """The rows and the queries as JSON."""
        facts: dict[str, Any] = {"queries": self.ledger.total}
        if self.routes is not None:
            facts["conditions"] = self.condition_counts()
        return json.dumps({**facts, "answers": self.rows()}) + "\n"

    def condition_counts(self) -> dict[str, int]:
        """How many images belong to each condition, and how many are unfamiliar.

        Compared over time, they show drift: a share of unfamiliar images that grows, a condition
        that disappears.
        """
        if self.routes is None:
            return {}
        numbers = self.routes.conditions[self.routes.familiar]
        counts = {str(number): int((numbers == number).sum()) for number in np.unique(numbers)}
        return {**counts, "unfamiliar": int((~self.routes.familiar).sum())}

    def write(self, path: str | Path) -> None:
        """Write the rows: as JSON if the name ends in .json, else as CSV."""
        is_json = Path(path).suffix.lower() == ".json"
        write_text(Path(path), self.json() if is_json else self.csv())


def apply(
    adaptor: Any,
    images: Any,
    box: Any,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    stop: Callable[[], bool] = lambda: False,
    listener: Listener | None = None,
    progress: bool = False,
    **options: Any,
) -> Answers:
    """Adapt new images with a learned adaptor and query the model once for each view.

    An image has one view, unless the adaptor was learned with more (`views=`). Its class weights,
    if it has any, apply to an image alone as in a batch.

    Parameters
    ----------
    adaptor : an Adaptor, a Run, a run folder, or an adaptor.safetensors.
    images : whatever `adapt` takes.
    box : the model. Given as a path or an address, it is loaded with the facts (mean, logits ...)
        that the model of the run was declared with, except those that this model declares itself.
    out : a file to write, CSV or, by its suffix, JSON. Answers are kept beside it as they arrive.
    resume : continue with answers to `out` that were interrupted.
    force : overwrite `out` if it exists.
    stop : asked after every piece of images; the answers so far are kept for `resume=True`.
    listener : receives events; without one, notices are warnings.
    progress : show a bar, in a terminal or a notebook, and notices in place of warnings.
    options : facts about the model, as `load_box` takes them.

    Examples
    --------
    >>> import numpy as np
    >>> from soda_tta.adaptors import Identity
    >>> model = lambda images: np.full((len(images), 2), 0.5)
    >>> answers = apply(Identity(), np.zeros((3, 3, 8, 8), np.float32), model)
    >>> answers.predictions, answers.ledger
    (array([0, 0, 0]), Ledger(3 queries: serve 3))
    """
    saved = load_adaptor(adaptor)
    target = None if out is None else Path(out)
    with shown(listener, progress=progress) as audience:
        tell = audience or warn
        deployed = deployed_model(saved, box, options, tell)
        source = at_working_size(open_images(images), deployed.input.view)
        for text in (*saved.notices, *other_size(saved, source)):
            tell(Notice(text))
        # reads every pixel, only to name the file that answers are kept in
        digest = "" if target is None else digest_of(source, saved.adaptor, deployed)
        with partial_answers(target, digest, resume=resume, force=force) as partial:
            ledger = Ledger(book=partial.book())
            answering = saved.adaptor.answering
            plan = Plan(len(source), 0, {"serve": answering.queries * len(source)}, None)
            tell(Planned(plan, ledger))
            meter = Meter(deployed, ledger, waiting=lambda *wait: tell(Waiting(*wait)))
            meter.responded = lambda *response: tell(Responded(*response))
            adaptor = saved.adaptor
            if worth_compiling(len(source), source.size):
                adaptor = for_many(adaptor, os.cpu_count() or 1)
            whole = Views(source, adaptor, meter, partial, listener=tell, stop=stop)
            names = [source.name(index) for index in range(len(source))]
            try:
                answers = Answers(names, whole.run(), ledger, routes=whole.all_routes())
            except Interrupted:
                return Answers(names, whole.so_far(), ledger, interrupted=True)
            if target is not None:
                answers.write(target)
                partial.remove()
            return answers


class Views:
    """A pass for each view of the adapted images.

    Parameters
    ----------
    images, adaptor, meter : as for a `Pass`.
    partial : keeps the responses to each view.
    more : further options of the passes.
    """

    def __init__(
        self, images: Images, adaptor: Adaptor, meter: Meter, partial: PartialAnswers, **more: Any
    ) -> None:
        self.answering = adaptor.answering
        self.passes = [
            Pass(images, adaptor, meter, "serve", partial.file(view), view=view, **more)
            for view in (None, *self.answering.views)
        ]

    def run(self) -> Array:
        """Answer every image; raises Interrupted if the user asks to stop."""
        return self._combined([each.run() for each in self.passes])

    def so_far(self) -> Array:
        """The answers to images of which every view has its response; NaN for the others."""
        responses = [each.so_far() for each in self.passes]
        unknown = np.full_like(responses[0], np.nan)
        return self._combined([rows if rows.size else unknown for rows in responses])

    def _combined(self, responses: list[Array]) -> Array:
        if self.answering.is_plain or not responses[0].size:
            return responses[0]
        return self.answering.answers(np.array(responses))

    def all_routes(self) -> Routes | None:
        """The condition of every image; None if the adaptor knows no conditions."""
        return self.passes[0].all_routes()


def warn(event: Event) -> None:
    """Show notices as warnings; other events are not shown."""
    if isinstance(event, Notice):
        warnings.warn(event.text, stacklevel=3)


def deployed_model(saved: SavedAdaptor, box: Any, options: dict[str, Any], tell: Listener) -> Box:
    """The model, with the facts of the run's card where it is given by name."""
    if saved.card is None or not isinstance(box, str | Path):
        return load_box(box, **options)
    deployed, notice = load_box_like(saved.card.box, box, **options)
    if notice is not None:
        tell(Notice(notice))
    return deployed


def other_size(saved: SavedAdaptor, images: Images) -> list[str]:
    """A notice if the images have another size than those that the adaptor was learned on."""
    if saved.card is None or list(images.size) == list(saved.card.images["size"]):
        return []
    learned = size_text(saved.card.images["size"])
    return [
        f"the adaptor was learned on images of {learned}, and these are {size_text(images.size)}; "
        "it may do less good there."
    ]


def digest_of(images: Images, adaptor: Adaptor, box: Box) -> str:
    """What answers depend on, in twelve digits."""
    facts = [images.fingerprint(), adaptor.kind, adaptor.settings, box.card()]
    if not adaptor.answering.is_plain:
        facts.append(adaptor.answering.settings)
    content = json.dumps(facts).encode() + adaptor.parameters.tobytes()
    return hashlib.sha256(content).hexdigest()[:12]
