"""`--model FILE`: an ONNX or TFLite file that answers the protocol itself, with no upstream."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import numpy as np

from soda_tta._version import __version__
from soda_tta.box.backends.onnx_runtime import OnnxBox
from soda_tta.box.backends.tflite import TfliteBox
from soda_tta.box.box import Box
from soda_tta.errors import BoxError
from soda_tta.foreign_text import quoted
from soda_tta.protocols.open_inference import (
    BINARY_EXTENSION,
    ModelMetadata,
    ProtocolError,
    Request,
    Tensor,
    TensorMetadata,
    decode_request,
    encode_metadata,
    encode_response,
)
from soda_tta.protocols.tensors import DATATYPE_OF, DATATYPES
from soda_tta.protocols.tflite_files import open_interpreter
from soda_tta.serve.compression import decompressed
from soda_tta.serve.connection import Reply
from soda_tta.serve.pixels import innermost
from soda_tta.types import Array

VERSION = "1"
IN_ADDRESSES = re.compile(r"[^\s/\\%?#\x00-\x1f\x7f]+")  # what the name of a model may consist of
MOST_BYTES = 2**26  # of a request that was compressed
THREADS = 2  # requests that are computed at once; each may use several cores
ONNX_TYPES = {f"tensor({name})": name for name in DATATYPES.values()} | {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
}


class Runner(Protocol):
    """Computes outputs from inputs, as the file declares them."""

    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]
    platform: str

    def run(self, names: Sequence[str], tensors: Mapping[str, Array]) -> list[Array]:
        """The outputs of these names."""


class LocalModel:
    """The model of a file, as a server of the protocol shows it.

    Parameters
    ----------
    box : Box
        An `OnnxBox` or `TfliteBox`.
    name : str, optional
        Default: the name of the file without its suffix.
    """

    def __init__(self, box: Box, name: str | None = None) -> None:
        inside = innermost(box)
        if not isinstance(inside, OnnxBox | TfliteBox):
            raise BoxError(f"{inside!r} is not a file; serve an .onnx or .tflite file (--model).")
        self.runner: Runner = OnnxRunner(inside) if isinstance(inside, OnnxBox) else Lite(inside)
        self.name = name or Path(inside.path).stem
        if not IN_ADDRESSES.fullmatch(self.name) or not self.name.strip("."):
            raise BoxError(
                f"{self.name!r} cannot be part of an address; choose a name without spaces and "
                "slashes (--name)."
            )
        self.version = ""
        self.metadata = ModelMetadata(
            self.name, self.runner.inputs, self.runner.outputs, (VERSION,), self.runner.platform
        )
        self.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="model")

    async def send(self, verb: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, self.reply, verb, path, headers, body)

    def limit(self, most: int) -> None:
        """Its responses are our own, and as long as the file makes them."""

    async def close(self) -> None:
        self.pool.shutdown(cancel_futures=True)

    def reply(self, verb: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """The response to one request of the protocol."""
        parts = [unquote(part) for part in path.partition("?")[0].strip("/").split("/")]
        if parts in (["v2", "health", "live"], ["v2", "health", "ready"]):
            return as_json({})
        if parts == ["v2"]:
            extensions = [BINARY_EXTENSION]
            return as_json({"name": "soda-tta", "version": __version__, "extensions": extensions})
        if parts[:2] != ["v2", "models"] or len(parts) < 3:
            return refused(404, "this server has no such route.")
        if parts[2] != self.name:
            return refused(404, f"the model is {self.name!r}, not {quoted(parts[2])!r}.")
        rest = parts[3:]
        if rest[:1] == ["versions"]:
            if rest[1:2] != [VERSION]:
                return refused(404, f"the model has only the version {VERSION}.")
            rest = rest[2:]
        return self._about_model(verb, rest, headers, body)

    def _about_model(
        self, verb: str, rest: list[str], headers: Mapping[str, str], body: bytes
    ) -> Reply:
        if verb in ("GET", "HEAD") and rest in ([], ["ready"]):
            return as_json({} if rest else encode_metadata(self.metadata))
        if rest != ["infer"]:
            return refused(404, "this server has no such route.")
        if verb != "POST":
            return refused(405, "send inference requests by POST.")
        opened = decompressed(body, headers, MOST_BYTES)
        if opened is None:
            return refused(400, "the body cannot be decompressed.")
        try:
            request = decode_request(opened, headers)
            outputs = self.infer(request)
            wanted = {output.name: output.binary for output in request.outputs}
            binary = [output.name for output in outputs if wanted.get(output.name, request.binary)]
            content, lengths = encode_response(
                outputs, model_name=self.name, model_version=VERSION, binary=binary, id=request.id
            )
        except (ProtocolError, BoxError) as error:
            return refused(400, str(error))
        return Reply(200, content, {name.lower(): value for name, value in lengths.items()})

    def infer(self, request: Request) -> list[Tensor]:
        """The outputs that a request wants."""
        declared = {tensor.name: tensor.datatype for tensor in self.runner.inputs}
        tensors = {tensor.name: tensor.array for tensor in request.inputs}
        received = {tensor.name: tensor.datatype for tensor in request.inputs}
        if received != declared or len(request.inputs) != len(declared):
            raise ProtocolError(f"the model takes {declared}; the request has {received}.")
        present = [output.name for output in self.runner.outputs]
        names = [output.name for output in request.outputs] or present
        for name in names:
            if name not in present:
                raise ProtocolError(f"the model has no output {quoted(name)!r}; it has {present}.")
        arrays = self.runner.run(names, tensors)
        return [Tensor(name, array) for name, array in zip(names, arrays, strict=True)]


class OnnxRunner:
    """An ONNX file."""

    platform = "onnxruntime_onnx"

    def __init__(self, box: OnnxBox) -> None:
        self.session = box.session
        self.inputs = tuple(map(of_node, self.session.get_inputs()))
        outputs = [each for each in self.session.get_outputs() if each.type in ONNX_TYPES]
        self.outputs = tuple(map(of_node, outputs))

    def run(self, names: Sequence[str], tensors: Mapping[str, Array]) -> list[Array]:
        try:
            return list(self.session.run(list(names), dict(tensors)))
        except Exception as error:  # ONNX Runtime has its own classes, all of them Exceptions
            raise BoxError(f"the model could not compute this: {quoted(error)}") from error


class Lite:
    """A TFLite file, one request at a time per interpreter."""

    platform = "tensorflow_tflite"

    def __init__(self, box: TfliteBox) -> None:
        self.box = box
        interpreter = open_interpreter(box.path, box.content)
        self.idle = [interpreter]
        self.inputs = tuple(map(of_details, interpreter.get_input_details()))
        self.outputs = tuple(map(of_details, interpreter.get_output_details()))

    def run(self, names: Sequence[str], tensors: Mapping[str, Array]) -> list[Array]:
        try:
            interpreter = self.idle.pop()
        except IndexError:
            interpreter = open_interpreter(self.box.path, self.box.content)
        try:
            rows = self._run(interpreter, names, tensors)
        except (ValueError, RuntimeError) as error:
            raise BoxError(f"the model could not compute this: {quoted(error)}") from error
        self.idle.append(interpreter)
        return rows

    def _run(
        self, interpreter: Any, names: Sequence[str], tensors: Mapping[str, Array]
    ) -> list[Array]:
        for details in interpreter.get_input_details():
            array = tensors[details["name"]]
            if array.shape != tuple(details["shape"]):
                interpreter.resize_tensor_input(details["index"], array.shape, strict=True)
        interpreter.allocate_tensors()
        for details in interpreter.get_input_details():
            interpreter.set_tensor(details["index"], tensors[details["name"]])
        interpreter.invoke()
        places = {each["name"]: each["index"] for each in interpreter.get_output_details()}
        return [np.array(interpreter.get_tensor(places[name])) for name in names]


def of_node(node: Any) -> TensorMetadata:
    """An input or output of an ONNX file."""
    shape = tuple(extent if isinstance(extent, int) else -1 for extent in node.shape)
    return TensorMetadata(node.name, DATATYPE_OF[ONNX_TYPES[node.type]], shape)


def of_details(details: Any) -> TensorMetadata:
    """An input or output of a TFLite file."""
    datatype = DATATYPE_OF[np.dtype(details["dtype"]).name]
    shape = tuple(int(extent) for extent in details["shape_signature"])
    return TensorMetadata(details["name"], datatype, shape)


def as_json(message: Mapping[str, Any], status: int = 200) -> Reply:
    """A JSON object as a response."""
    return Reply(status, json.dumps(message).encode(), {"content-type": "application/json"})


def refused(status: int, reason: str) -> Reply:
    """An error in the shape of the protocol."""
    return as_json({"error": reason}, status)
