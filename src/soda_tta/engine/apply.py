"""`apply`: a learned adaptor on new images, one query per image."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soda_tta.adaptors import Adaptor
from soda_tta.box import Box, Ledger, Meter, load_box
from soda_tta.box.like import load_box_like
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
from soda_tta.storage.partial_answers import partial_answers
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
    """

    names: list[str]
    probabilities: Array
    ledger: Ledger
    interrupted: bool = False

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
        """One dictionary per image: image, class, confidence; None where it was not answered."""
        columns = zip(self.names, self.predictions.tolist(), self.confidences.tolist(), strict=True)
        rows: list[dict[str, Any]] = []
        for name, best, confidence in columns:
            row = {"image": name, "class": best, "confidence": round(confidence, 6)}
            if math.isnan(confidence):
                row |= {"class": None, "confidence": None}
            rows.append(row)
        return rows

    def csv(self) -> str:
        """The rows as CSV, with a header."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(["image", "class", "confidence"])
        for row in self.rows():
            confidence = row["confidence"]
            text = None if confidence is None else f"{confidence:.6f}"
            writer.writerow([as_cell(row["image"]), row["class"], text])
        return buffer.getvalue()

    def json(self) -> str:
        """The rows and the queries as JSON."""
        return json.dumps({"queries": self.ledger.total, "answers": self.rows()}) + "\n"

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
    """Adapt new images with a learned adaptor and ask the model about each once.

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
        digest = digest_of(source, saved.adaptor, deployed)
        with partial_answers(target, digest, resume=resume, force=force) as partial:
            ledger = Ledger(book=partial.book())
            plan = Plan(len(source), 0, {"serve": len(source)}, None)
            tell(Planned(plan, ledger))
            meter = Meter(deployed, ledger, waiting=lambda *wait: tell(Waiting(*wait)))
            meter.responded = lambda *response: tell(Responded(*response))
            file = partial.file()
            whole = Pass(source, saved.adaptor, meter, "serve", file, listener=tell, stop=stop)
            names = [source.name(index) for index in range(len(source))]
            try:
                answers = Answers(names, whole.run(), ledger)
            except Interrupted:
                return Answers(names, whole.so_far(), ledger, interrupted=True)
            if target is not None:
                answers.write(target)
                partial.remove()
            return answers


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
    content = json.dumps(facts).encode() + adaptor.parameters.tobytes()
    return hashlib.sha256(content).hexdigest()[:12]
