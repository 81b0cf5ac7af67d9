"""A box from a TFLite file, run by LiteRT."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.box.backends.backend import Backend
from soda_tta.box.backends.tflite_tensors import Details, image_input, scores_output, tensors_of
from soda_tta.box.facts import NORMALISATION
from soda_tta.box.input import declared_by_shape, input_from_shape
from soda_tta.errors import BoxError
from soda_tta.foreign_text import quoted
from soda_tta.protocols.tflite_files import damaged, open_interpreter, read_tflite
from soda_tta.protocols.tflite_graph import Quantisation, quantisation_behind, quantisation_of
from soda_tta.protocols.tflite_metadata import read_metadata
from soda_tta.types import Array

MOST_THREADS = 4  # by default: each has the working memory of the model
LOGITS_BELOW = -0.01  # a quantised output that can hold such values does not hold probabilities
LOGITS_ABOVE = 1.5


class TfliteBox(Backend):
    """Query a TFLite file. Shape, type, quantisation, normalisation and labels are read from it.

    Stated facts have precedence over the metadata of the file, and the metadata over its tensors.
    The model runs once per image, also if its batch could be changed.

    Parameters
    ----------
    path : str or Path
    output : str, optional
        Name of the output with the class scores. Default: the only one that can be.
    batch : int, default 64
        Images per request. A model with a fixed batch of several images overrides it.
    threads : int, optional
        Images that are computed at once, each by one thread. Default: one per core, at most 4.
        The responses do not depend on it.
    class_names : sequence of str, optional
        Names of the classes. Default: those of the label file inside the TFLite file, if any.
    **facts
        Facts about the input (see `Input`) and the output (`logits`, `partial`). Default: as the
        file declares them.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        output: str | None = None,
        batch: int = 64,
        threads: int | None = None,
        class_names: Sequence[str] | None = None,
        **facts: Any,
    ) -> None:
        self.path = Path(path)
        self.content = read_tflite(self.path)
        interpreter = open_interpreter(self.path, self.content)
        inputs, outputs = tensors_of(self.path, interpreter)
        image = image_input(self.path, inputs)
        place, scores = scores_output(self.path, outputs, output)
        self.input_index: int = image["index"]
        self.input_name: str = image["name"]
        self.output_index: int = scores["index"]
        self.output_name: str = scores["name"]
        self.output_quantisation = quantisation_of(scores)
        self.rounding = self.output_quantisation or self._quantisation_behind(self.output_index)

        metadata = read_metadata(self.path, self.content, place)
        self.class_names = metadata.class_names if class_names is None else tuple(class_names)
        label_file = metadata.label_file if class_names is None else None
        self._check_class_names(int(scores["shape"][1:].max(initial=1)), label_file)
        declared = metadata.normalisation | self._declared_output()
        self._state_facts(image, declared, facts)

        images_per_run = int(image["shape_signature"][0])
        self.images_per_run = max(images_per_run, 1)
        self.fixed_batch = images_per_run > 1
        self.batch = images_per_run if self.fixed_batch else batch
        self.threads = threads or min(os.cpu_count() or 1, MOST_THREADS)
        # An interpreter serves one thread at a time; further ones are opened when they are needed.
        self.idle = deque([interpreter])
        self.pool = ThreadPoolExecutor(self.threads, thread_name_prefix="tflite")

    @classmethod
    def takes(cls, model: Any) -> bool:
        return isinstance(model, str) and model.endswith(".tflite")

    def _declared_output(self) -> dict[str, Any]:
        """What the rounding of the scores says about them."""
        if self.rounding is None:
            return {}
        is_logits = self.rounding.lowest < LOGITS_BELOW or self.rounding.highest > LOGITS_ABOVE
        return {"logits": True} if is_logits else {"partial": True}

    def _state_facts(self, image: Details, declared: dict[str, Any], facts: dict[str, Any]) -> None:
        """Set the facts about input and output; stated ones have precedence over declared ones."""
        stated = {name: value for name, value in facts.items() if value is not None}
        kept = dict(declared)
        if set(NORMALISATION) & set(stated):  # they belong together
            kept = {name: value for name, value in declared.items() if name not in NORMALISATION}
        input_facts = self.state_output({**kept, **stated})
        rounding = quantisation_of(image) or self._quantisation_behind(self.input_index)
        if rounding is not None:
            input_facts.setdefault("quantisation", (rounding.scale, rounding.zero_point))
        shape = [int(extent) for extent in image["shape_signature"]]
        dtype = np.dtype(image["dtype"]).name
        self.input = input_from_shape(shape, dtype, **input_facts)
        self.declared = {**declared_by_shape(shape, dtype), **declared}

    def _quantisation_behind(self, index: int) -> Quantisation | None:
        """The rounding inside of the model next to a tensor of floats."""
        try:
            return quantisation_behind(self.content, index)
        except (ValueError, IndexError) as error:
            raise BoxError(damaged(self.path)) from error

    def _check_class_names(self, classes: int, file: str | None) -> None:
        """Refuse too many or too few names of classes: they would name the wrong ones."""
        if self.class_names is None or len(self.class_names) == classes:
            return
        counted = f"there are {len(self.class_names)} class names"
        if file is not None:
            counted = f"the label file {quoted(file)} has {len(self.class_names)} names"
        raise BoxError(
            f"{counted} for the {classes} classes of {self.path}; pass one name per class "
            "(class_names=[...]), or pack the label file of this model into it."
        )

    def answer(self, images: Array) -> Array:
        runs = len(images) // self.images_per_run
        pieces = np.array_split(images, min(self.threads, runs))
        rows = np.concatenate(list(self.pool.map(self._scores, pieces)))
        if self.output_quantisation is not None:
            scale, zero_point, _ = self.output_quantisation
            rows = (rows.astype(np.float32) - zero_point) * np.float32(scale)
        if self.rounding is None or self.logits:
            return rows
        return without_excess(rows, self.rounding.scale)

    def _scores(self, images: Array) -> Array:
        """What the model returns for some images, computed by one thread."""
        try:
            interpreter = self.idle.pop()
        except IndexError:
            interpreter = open_interpreter(self.path, self.content)
        try:
            rows = self._run(interpreter, images)
        except (ValueError, RuntimeError) as error:
            raise BoxError(f"LiteRT could not run {self.path}: {quoted(error)}") from error
        self.idle.append(interpreter)
        return rows

    def _run(self, interpreter: Any, images: Array) -> Array:
        rows = []
        for start in range(0, len(images), self.images_per_run):
            # Few images at a time, because these fit into the processor's cache.
            prepared = self.input.prepare(images[start : start + self.images_per_run])
            if start == 0:
                self._make_fit(interpreter, prepared.shape)
            interpreter.set_tensor(self.input_index, prepared)
            interpreter.invoke()
            scores = interpreter.get_tensor(self.output_index)
            rows.append(scores.reshape(len(prepared), -1))
        return np.concatenate(rows)

    def _make_fit(self, interpreter: Any, shape: tuple[int, ...]) -> None:
        """Let the model take images of another size than before, if it can."""
        (image,) = interpreter.get_input_details()
        if shape != tuple(image["shape"]):
            interpreter.resize_tensor_input(self.input_index, shape)
            interpreter.allocate_tensors()

    def fingerprint(self) -> str:
        return f"tflite:sha256:{hashlib.sha256(self.content).hexdigest()}:{self.output_name}"

    def __repr__(self) -> str:
        return f"TfliteBox({str(self.path)!r})"


def without_excess(rows: Array, scale: float) -> Array:
    """Scale rows that sum to more than 1 to 1, as far as rounding explains the excess.

    Values are rounded to multiples of `scale`. Many small ones that were rounded up add up.

    >>> without_excess(np.array([[0.5, 0.25, 0.25, 0.25], [1.0, 1.0, 1.0, 0.0]]), 0.25).tolist()
    [[0.4, 0.2, 0.2, 0.2], [1.0, 1.0, 1.0, 0.0]]
    """
    sums = rows.sum(axis=1, keepdims=True)
    if sums.max() <= 1:
        return rows
    explained = 1 + (rows > 0).sum(axis=1, keepdims=True) * scale / 2
    is_scaled = (sums > 1) & (sums <= explained)
    scaled: Array = np.where(is_scaled, rows / np.where(is_scaled, sums, 1), rows)
    return scaled
