"""TFLite files, opened in LiteRT."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from soda_tta.errors import BoxError
from soda_tta.foreign_text import quoted
from soda_tta.protocols.tflite_graph import check_graph

IDENTIFIER = b"TFL3"  # from the fifth byte on
EDGE_TPU = "edgetpu-custom-op"
CUSTOM_OPERATOR = re.compile(r"unresolved custom op: ([\w-]+)")
BUILT_IN_ONLY = (
    "convert the model with built-in operators only, or run it in a function of your own "
    "(file.py:function)."
)


def read_tflite(path: Path) -> bytes:
    """The content of a TFLite file, or a `BoxError` if it is none.

    Parameters
    ----------
    path : Path
    """
    if not path.is_file():
        raise BoxError(f"{path} does not exist; pass the path of a TFLite file.")
    content = path.read_bytes()
    if content[4:8] != IDENTIFIER:
        raise BoxError(
            f"{path} is not a TFLite file: it does not begin with the mark TFL3; "
            "copy or download it again, or convert the model again."
        )
    try:
        check_graph(content)
    except ValueError as error:
        raise BoxError(damaged(path)) from error
    return content


def damaged(path: Path) -> str:
    """The error about a file with a part that cannot be read."""
    return f"{path} is cut off or damaged; copy or download it again."


def open_interpreter(path: Path, content: bytes) -> Any:
    """A LiteRT interpreter with its memory allocated.

    Parameters
    ----------
    path : Path
        Where the file is, for errors.
    content : bytes
        The file. It is not copied, so several interpreters share it.
    """
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise BoxError("TFLite files need LiteRT: pip install 'soda-tta[tflite]'.") from error
    try:
        interpreter = Interpreter(model_content=content, num_threads=1)
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError) as error:
        raise BoxError(_refusal(path, str(error))) from error
    return interpreter


def _refusal(path: Path, reason: str) -> str:
    """Why LiteRT cannot load a file, with the remedy."""
    if "not a valid Flatbuffer" in reason:
        return damaged(path)
    if EDGE_TPU in reason:
        return (
            f"{path} is compiled for the Edge TPU; pass the file that it was compiled from (the "
            "CPU version, usually the same name without _edgetpu)."
        )
    custom = CUSTOM_OPERATOR.search(reason)
    if custom is not None:
        return f"{path} has the custom operator {custom[1]}, which LiteRT lacks; {BUILT_IN_ONLY}"
    if "Flex delegate" in reason or "Select TensorFlow op" in reason:
        return f"{path} has TensorFlow operators, which LiteRT lacks; {BUILT_IN_ONLY}"
    return f"{path} is not a TFLite model that LiteRT can load: {quoted(reason)}"
