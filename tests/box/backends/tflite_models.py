"""Tiny TFLite files, written with the schema inside of LiteRT; no TensorFlow and no download.

Each is `softmax(mean colour @ matrix)`. Bytes are dequantised first, and quantised last.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

MATRIX = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32) * 4
TYPES = {"float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "int16": 7, "int8": 9}
MEAN, FULLY_CONNECTED, SOFTMAX, DEQUANTIZE, QUANTIZE, CUSTOM = 40, 9, 25, 6, 114, 32


@dataclass
class Graph:
    """The tensors and operators of a model."""

    tensors: list[Any] = field(default_factory=list)
    operators: list[Any] = field(default_factory=list)
    codes: list[Any] = field(default_factory=list)
    buffers: list[Any] = field(default_factory=lambda: [schema.BufferT()])

    def tensor(
        self,
        name: str,
        shape: list[int],
        dtype: str = "float32",
        quantisation: tuple[float, int] | None = None,
        content: np.ndarray | None = None,
    ) -> int:
        place = 0
        if content is not None:
            place = self.buffer(content.tobytes())
        stored = schema.TensorT(type=TYPES[dtype], buffer=place, name=name)
        stored.shape = [max(extent, 1) for extent in shape]
        if -1 in shape:
            stored.shapeSignature = shape
        if quantisation is not None:
            scale, zero_point = quantisation
            stored.quantization = schema.QuantizationParametersT(
                scale=[scale], zeroPoint=[zero_point]
            )
        self.tensors.append(stored)
        return len(self.tensors) - 1

    def buffer(self, content: bytes) -> int:
        self.buffers.append(schema.BufferT(data=np.frombuffer(content, np.uint8)))
        return len(self.buffers) - 1

    def operator(
        self, code: int, inputs: list[int], output: int, options: Any = None, custom: str = ""
    ) -> None:
        self.codes.append(
            schema.OperatorCodeT(
                deprecatedBuiltinCode=code, builtinCode=code, customCode=custom or None
            )
        )
        kind = type(options).__name__.removesuffix("T")
        self.operators.append(
            schema.OperatorT(
                opcodeIndex=len(self.codes) - 1,
                inputs=inputs,
                outputs=[output],
                builtinOptions=options,
                builtinOptionsType=getattr(schema.BuiltinOptions, kind, 0),
            )
        )

    def packed(self, inputs: list[int], outputs: list[int], metadata: bytes | None) -> bytes:
        entries = []
        if metadata is not None:
            entries = [schema.MetadataT(name="TFLITE_METADATA", buffer=self.buffer(metadata))]
        subgraph = schema.SubGraphT(
            tensors=self.tensors, inputs=inputs, outputs=outputs, operators=self.operators
        )
        model = schema.ModelT(
            version=3,
            operatorCodes=self.codes,
            subgraphs=[subgraph],
            buffers=self.buffers,
            metadata=entries,
        )
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())


class TinyTflite:
    """Write a file into a folder; see the keywords of `__call__`."""

    matrix = MATRIX

    @staticmethod
    def metadata(**facts: Any) -> bytes:
        """Metadata for a file; see `metadata_of`."""
        return metadata_of(**facts)

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def write(self, content: bytes) -> Path:
        self.count += 1
        path = self.folder / f"tiny{self.count}.tflite"
        path.write_bytes(content)
        return path

    def __call__(
        self,
        shape: tuple[int, ...] = (1, 8, 8, 3),
        dtype: str = "float32",
        quantisation: tuple[float, int] | None = None,
        output_dtype: str = "float32",
        output_quantisation: tuple[float, int] | None = None,
        *,
        rounded_inside: bool = False,
        outputs: tuple[str, ...] = ("probabilities",),
        inputs: int = 1,
        custom: str = "",
        metadata: bytes | None = None,
        archive: dict[str, bytes] | None = None,
    ) -> Path:
        """Quantisation belongs to the input and output, or, `rounded_inside`, to bytes inside."""
        graph = Graph()
        batch = shape[0]
        inner = ("float32", None) if rounded_inside else (dtype, quantisation)
        image = graph.tensor("image", list(shape), *inner)
        pixels = image
        if rounded_inside:
            pixels = graph.tensor("image_bytes", list(shape), dtype, quantisation)
            graph.operator(QUANTIZE, [image], pixels)
        if dtype != "float32":
            floats = graph.tensor("floats", list(shape))
            graph.operator(DEQUANTIZE, [pixels], floats)
            pixels = floats
        axes = graph.tensor("axes", [2], "int32", content=np.array([1, 2], np.int32))
        colours = graph.tensor("colours", [batch, shape[3]])
        graph.operator(MEAN, [pixels, axes], colours, schema.ReducerOptionsT(keepDims=False))
        weights = np.ascontiguousarray(MATRIX[: shape[3]].T)
        stored = graph.tensor("weights", list(weights.shape), content=weights)
        tensors = {"logits": graph.tensor("logits", [batch, 4])}
        graph.operator(
            FULLY_CONNECTED,
            [colours, stored, -1],
            tensors["logits"],
            schema.FullyConnectedOptionsT(),
        )
        tensors["probabilities"] = graph.tensor("probabilities", [batch, 4])
        graph.operator(
            SOFTMAX, [tensors["logits"]], tensors["probabilities"], schema.SoftmaxOptionsT(beta=1.0)
        )
        if custom:
            tensors["probabilities"] = graph.tensor("customised", [batch, 4])
            graph.operator(CUSTOM, [tensors["logits"]], tensors["probabilities"], custom=custom)
        if output_dtype != "float32":
            tensors["scores"] = graph.tensor(
                "scores", [batch, 4], output_dtype, output_quantisation
            )
            graph.operator(QUANTIZE, [tensors[outputs[0]]], tensors["scores"])
            outputs = ("scores",)
            if rounded_inside:
                tensors["final"] = graph.tensor("final", [batch, 4])
                graph.operator(DEQUANTIZE, [tensors["scores"]], tensors["final"])
                outputs = ("final",)
        spare = [graph.tensor(f"spare{number}", [1, 4]) for number in range(inputs - 1)]
        content = graph.packed([image, *spare], [tensors[name] for name in outputs], metadata)
        return self.write(content + (zipped(archive) if archive else b""))


def zipped(files: dict[str, bytes]) -> bytes:
    """A zip archive as the metadata tools of TensorFlow Lite append it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return archive.getvalue()


def metadata_of(
    mean: list[float] | None = None, std: list[float] | None = None, labels: str | None = None
) -> bytes:
    """Metadata with normalisation and the name of a label file."""
    unit = {0: 1, 1: {0: mean or [], 1: std or []}}
    file = {0: labels or "", 2: 2}
    image = {0: "image", 4: [] if mean is None and std is None else [unit]}
    scores = {0: "scores", 6: [] if labels is None else [file]}
    builder = flatbuffers.Builder(256)
    root = write_table(builder, {0: "tiny", 3: [{2: [image], 3: [scores]}]})
    builder.Finish(root, file_identifier=b"M001")
    return bytes(builder.Output())


def write_table(builder: flatbuffers.Builder, fields: dict[int, Any]) -> int:
    """Write a table by the numbers of its fields; whole numbers are bytes."""
    places = {number: write_value(builder, value) for number, value in fields.items()}
    builder.StartObject(max(fields) + 1)
    for number, place in places.items():
        if isinstance(fields[number], int):
            builder.PrependUint8Slot(number, place, 0)
        else:
            builder.PrependUOffsetTRelativeSlot(number, place, 0)
    return int(builder.EndObject())


def write_value(builder: flatbuffers.Builder, value: Any) -> int:
    """Write what a field refers to."""
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return int(builder.CreateString(value))
    if isinstance(value, dict):
        return write_table(builder, value)
    tables = [write_table(builder, each) for each in value if isinstance(each, dict)]
    builder.StartVector(4, len(value), 4)
    for each in reversed(tables or value):
        if tables:
            builder.PrependUOffsetTRelative(each)
        else:
            builder.PrependFloat32(each)
    return int(builder.EndVector())


@pytest.fixture
def tiny_tflite(tmp_path: Path) -> TinyTflite:
    return TinyTflite(tmp_path)
