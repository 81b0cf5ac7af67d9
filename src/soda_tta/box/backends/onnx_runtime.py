"""A box from an ONNX file, run by ONNX Runtime."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.box.backends.backend import Backend
from soda_tta.box.facts import OUTPUT_FACTS
from soda_tta.box.input import Input, declared_by_shape, input_from_shape
from soda_tta.box.top_classes import could_be_indices, spread
from soda_tta.errors import BoxError
from soda_tta.foreign_json import parse_json
from soda_tta.foreign_text import quoted
from soda_tta.protocols.onnx_files import METADATA_KEY, external_files, open_session
from soda_tta.types import Array

ELEMENT_TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}
INDEX_TYPES = ("tensor(int64)", "tensor(int32)")


class OnnxBox(Backend):
    """Query an ONNX file. Input name, layout, size and type are read from the file.

    Stated facts have precedence over the metadata of the file, and the metadata over its shapes.

    Parameters
    ----------
    path : str or Path
    output : str, optional
        Name of the output with the class scores. Default: the only one that can be.
    batch : int, default 64
        Images per run of the model. A model with a fixed batch overrides it.
    threads : int, optional
        Threads of ONNX Runtime. Default: one per physical core.
    provider : str, default "cpu"
        The execution provider of ONNX Runtime, such as "cuda", "coreml" or its full name.
    class_count : int, optional
        Number of all classes, for a file that returns only its top classes: their scores, and
        their indices in another output.
    **facts
        Facts about the input (see `Input`) and the output (`logits`, `partial`). Default: as the
        metadata of the file and its shapes declare them.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        output: str | None = None,
        batch: int = 64,
        threads: int | None = None,
        provider: str = "cpu",
        class_count: int | None = None,
        **facts: Any,
    ) -> None:
        self.path = Path(path)
        self.session = open_session(self.path, threads, provider)
        image = self._image_input()
        dtype = ELEMENT_TYPES[image.type]
        metadata = self._metadata()
        stated = {name: value for name, value in facts.items() if value is not None}
        input_facts = self.state_output({**metadata, **stated})
        self.input = input_from_shape(image.shape, dtype, **input_facts)
        self.declared = {**declared_by_shape(image.shape, dtype), **metadata}
        self.input_name: str = image.name
        self.output_name = self._scores_output(output)
        self.class_count = class_count
        self.indices_name = self._indices_output()
        self.fixed_batch = isinstance(image.shape[0], int) and image.shape[0] > 0
        self.batch = image.shape[0] if self.fixed_batch else batch

    @classmethod
    def takes(cls, model: Any) -> bool:
        return isinstance(model, str) and model.endswith(".onnx")

    def _image_input(self) -> Any:
        """The one input of the file, of a type that can be sent."""
        inputs = self.session.get_inputs()
        if len(inputs) != 1:
            raise BoxError(f"{self.path} has {len(inputs)} inputs; an image classifier has one.")
        if inputs[0].type not in ELEMENT_TYPES:
            raise BoxError(
                f"{self.path} takes {inputs[0].type}; "
                f"this package sends {', '.join(ELEMENT_TYPES)}."
            )
        return inputs[0]

    def _metadata(self) -> dict[str, Any]:
        """The facts in the metadata of the file."""
        text = self.session.get_modelmeta().custom_metadata_map.get(METADATA_KEY, "{}")
        try:
            facts = parse_json(text)
            Input(**{name: value for name, value in facts.items() if name not in OUTPUT_FACTS})
        except (ValueError, TypeError, AttributeError, BoxError) as error:
            raise BoxError(
                f"the metadata {METADATA_KEY} of {self.path} is not valid ({quoted(error)}): "
                f"{quoted(text)}"
            ) from error
        return dict(facts)

    def _scores_output(self, name: str | None) -> str:
        """The name of the output with the class scores."""
        outputs = self.session.get_outputs()
        names = [str(output.name) for output in outputs]
        if name is not None and name not in names:
            raise BoxError(
                f"{self.path} has no output {name!r}; choose from: {quoted(', '.join(names))} "
                "(output='NAME')."
            )
        likely = [
            str(output.name)
            for output in outputs
            if output.type in ELEMENT_TYPES and len(output.shape) in (2, 4)
        ]
        if name is None and len(likely) != 1:
            raise BoxError(
                f"{self.path} has the outputs {quoted(', '.join(names))}; "
                "choose the one with the class scores (output='NAME')."
            )
        return name or likely[0]

    def _indices_output(self) -> str | None:
        """The name of the output with the classes of the scores, if these are the top ones."""
        outputs = {str(output.name): output for output in self.session.get_outputs()}
        scores = outputs.pop(self.output_name)
        names = [
            name
            for name, output in outputs.items()
            if output.type in INDEX_TYPES and could_be_indices(output.shape, scores.shape)
        ]
        if self.class_count is None and not names:
            return None
        if self.class_count is None:
            raise BoxError(
                f"{self.path} returns its top classes: scores in {quoted(self.output_name)!r} and "
                f"their classes in {quoted(names[0])!r}; pass the number of all classes "
                "(class_count=1000), or export the model with the scores of all classes."
            )
        if len(names) != 1:
            raise BoxError(
                f"{self.path} has no output with the indices of top classes, which class_count is "
                "for; leave it out."
            )
        self.partial = True  # the other classes share what is missing
        return names[0]

    def answer(self, images: Array) -> Array:
        if self.class_count is not None and self.logits:
            raise BoxError(
                f"{self.path} returns the logits of its top classes only, which have no softmax; "
                "export the model with a softmax before the top classes."
            )
        prepared = self.input.prepare(images)
        names = [self.output_name, *([self.indices_name] if self.indices_name else [])]
        try:
            scores, *indices = self.session.run(names, {self.input_name: prepared})
        except Exception as error:  # ONNX Runtime has its own classes, all of them Exceptions
            reason = quoted(error)
            raise BoxError(f"ONNX Runtime could not run {self.path}: {reason}") from error
        if self.class_count is None:
            return np.asarray(scores)
        return spread(np.asarray(scores), np.asarray(indices[0]), self.class_count)

    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.path.read_bytes())
        for file in external_files(self.path):
            digest.update(file.read_bytes())
        classes = "" if self.class_count is None else f":{self.class_count}"
        return f"onnx:sha256:{digest.hexdigest()}:{self.output_name}{classes}"

    def __repr__(self) -> str:
        return f"OnnxBox({str(self.path)!r})"
