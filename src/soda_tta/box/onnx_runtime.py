"""A box from an ONNX file, run by ONNX Runtime."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.box.box import Box
from soda_tta.box.input import Array, input_from_shape
from soda_tta.errors import BoxError
from soda_tta.onnx_files import METADATA_KEY, open_session

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
            raise BoxError(f"{self.path} takes {len(declared)} inputs; an image classifier takes one.")
        (image,) = declared
        if image.type not in ELEMENT_TYPES:
            raise BoxError(f"{self.path} takes {image.type}; this package sends {', '.join(ELEMENT_TYPES)}.")
        facts = json.loads(self.session.get_modelmeta().custom_metadata_map.get(METADATA_KEY, "{}"))
        stated = {**facts, **{name: value for name, value in stated.items() if value is not None}}
        self.logits = bool(stated.pop("logits", False)) if logits is None else logits
        self.input = input_from_shape(image.shape, ELEMENT_TYPES[image.type], **stated)
        self.input_name: str = image.name
        self.output_name = output or self._probabilities()
        self.fixed_batch = image.shape[0] if isinstance(image.shape[0], int) and image.shape[0] > 0 else None
        self.batch = self.fixed_batch or batch

    def _probabilities(self) -> str:
        outputs = self.session.get_outputs()
        rows = [o for o in outputs if o.type in ELEMENT_TYPES and len(o.shape) in (2, 4)]
        if len(rows) == 1 or (rows and len(outputs) == 1):
            return str(rows[0].name)
        names = ", ".join(o.name for o in outputs)
        raise BoxError(f"{self.path} has the outputs {names}; name the one with the class scores (--output NAME).")

    def answer(self, images: Array) -> Array:
        prepared = self.input.prepare(images)
        missing = (self.fixed_batch or len(prepared)) - len(prepared)
        if missing:
            prepared = np.concatenate([prepared, np.repeat(prepared[-1:], missing, axis=0)])
        try:
            (output,) = self.session.run([self.output_name], {self.input_name: prepared})
        except Exception as error:  # onnxruntime raises its own classes, all from Exception
            raise BoxError(f"ONNX Runtime could not run {self.path}: {str(error).splitlines()[0]}") from error
        return np.asarray(output)[: len(images)]

    def fingerprint(self) -> str:
        return f"onnx:sha256:{hashlib.sha256(self.path.read_bytes()).hexdigest()}"

    def __repr__(self) -> str:
        return f"OnnxBox({str(self.path)!r})"
