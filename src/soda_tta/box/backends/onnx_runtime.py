"""A box from an ONNX file, run by ONNX Runtime."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.box.box import Box
from soda_tta.box.facts import Input, input_from_shape, said_by_shape
from soda_tta.errors import BoxError
from soda_tta.protocols.onnx_files import METADATA_KEY, external_files, open_session
from soda_tta.types import Array

ELEMENT_TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}


class OnnxBox(Box):
    """Ask an ONNX file. Input name, layout, size and type are read from it; normalisation is stated.

    What is stated here goes before what the file's metadata says, which goes before what its shapes say.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        logits: bool | None = None,
        output: str | None = None,
        batch: int = 64,
        threads: int | None = None,
        **stated: Any,
    ) -> None:
        self.path = Path(path)
        self.session = open_session(self.path, threads)
        declared = self.session.get_inputs()
        if len(declared) != 1:
            raise BoxError(
                f"{self.path} takes {len(declared)} inputs; an image classifier takes one."
            )
        (image,) = declared
        if image.type not in ELEMENT_TYPES:
            raise BoxError(
                f"{self.path} takes {image.type}; this package sends {', '.join(ELEMENT_TYPES)}."
            )
        facts = self._facts()
        stated = {**facts, **{name: value for name, value in stated.items() if value is not None}}
        said = stated.pop("logits", False)
        self.logits = bool(said if logits is None else logits)
        dtype = ELEMENT_TYPES[image.type]
        self.input = input_from_shape(image.shape, dtype, **stated)
        self.says = {**said_by_shape(image.shape, dtype), **facts}
        self.input_name: str = image.name
        self.output_name = self._probabilities(output)
        self.fixed_batch = isinstance(image.shape[0], int) and image.shape[0] > 0
        self.batch = image.shape[0] if self.fixed_batch else batch

    def _facts(self) -> dict[str, Any]:
        """What the file's metadata says of its input."""
        text = self.session.get_modelmeta().custom_metadata_map.get(METADATA_KEY, "{}")
        try:
            facts = json.loads(text)
            Input(**{name: value for name, value in facts.items() if name != "logits"})
        except (ValueError, TypeError, AttributeError, BoxError) as error:
            raise BoxError(
                f"the metadata {METADATA_KEY} of {self.path} makes no sense ({error}): {text[:200]}"
            ) from error
        return dict(facts)

    def _probabilities(self, wanted: str | None) -> str:
        outputs = self.session.get_outputs()
        names = [str(o.name) for o in outputs]
        if wanted is not None and wanted not in names:
            raise BoxError(
                f"{self.path} has no output {wanted!r}; it has {', '.join(names)} (--output NAME)."
            )
        rows = [o for o in outputs if o.type in ELEMENT_TYPES and len(o.shape) in (2, 4)]
        if wanted is None and len(rows) != 1:
            raise BoxError(
                f"{self.path} has the outputs {', '.join(names)}; name the one with the class scores (--output NAME)."
            )
        return wanted or str(rows[0].name)

    def answer(self, images: Array) -> Array:
        prepared = self.input.prepare(images)
        try:
            (output,) = self.session.run([self.output_name], {self.input_name: prepared})
        except Exception as error:  # onnxruntime raises its own classes, all from Exception
            raise BoxError(
                f"ONNX Runtime could not run {self.path}: {str(error).splitlines()[0]}"
            ) from error
        return np.asarray(output)

    def fingerprint(self) -> str:
        whole = hashlib.sha256(self.path.read_bytes())
        for name in external_files(self.path):
            whole.update((self.path.parent / name).read_bytes())
        return f"onnx:sha256:{whole.hexdigest()}:{self.output_name}"

    def __repr__(self) -> str:
        return f"OnnxBox({str(self.path)!r})"
