"""ONNX files: opened in ONNX Runtime, and written from PyTorch modules, each checked before it is trusted."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.errors import BoxError, SodaError
from soda_tta.storage.atomic import replacing

METADATA_KEY = "soda_tta.input"  # JSON in a file's metadata: what its shapes cannot say (mean, std, logits ...)
TOLERANCE = 1e-5


def open_session(path: Path, threads: int | None = None) -> Any:
    """An ONNX Runtime session on the CPU, without its telemetry."""
    try:
        import onnxruntime
    except ImportError as error:
        raise BoxError("ONNX files need ONNX Runtime: pip install 'soda-tta[onnx]'.") from error
    if not path.is_file():
        raise BoxError(f"{path} does not exist; give the path of an ONNX file.")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Its threads would go on spinning after an answer and take the cores from the adaptor, whose turn it then is.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if threads is not None:
        options.intra_op_num_threads = threads
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise BoxError(
            f"{path} is not an ONNX model ONNX Runtime can load: {str(error).splitlines()[0]}"
        ) from error


def external_files(path: Path) -> list[str]:
    """The files beside an ONNX file that hold its weights, if it does not hold them itself."""
    if (
        b"location" not in path.read_bytes()
    ):  # the key under which a tensor names its file; spares most the parsing
        return []
    import onnx

    tensors = onnx.load(path, load_external_data=False).graph.initializer
    outside = [each for each in tensors if each.data_location == onnx.TensorProto.EXTERNAL]
    return sorted(
        {entry.value for each in outside for entry in each.external_data if entry.key == "location"}
    )


def export_onnx(
    module: Any,
    path: Path,
    *,
    example: tuple[int, ...],
    check: tuple[int, ...],
    output: str,
    facts: dict[str, Any] | None = None,
) -> float:
    """Trace `module` on images of shape `example`, verify it on shape `check`; returns the largest deviation.

    The axes in which `example` and `check` differ stay free in the file. `facts` (normalisation, logits ...)
    go into its metadata, where `OnnxBox` finds them.
    """
    try:
        import onnx
    except ImportError as error:
        raise SodaError("writing ONNX files needs: pip install 'soda-tta[onnx]'.") from error
    import torch

    module = module.eval()
    free = {
        axis: f"axis{axis}"
        for axis, (a, b) in enumerate(zip(example, check, strict=True))
        if a != b
    }
    spatial = free if len(free) > 1 else {}  # the output of a classifier shares only the first axis
    with replacing(path) as temporary:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # the tracing exporter is deprecated but needs no further package
            torch.onnx.export(
                module,
                (torch.rand(example),),
                str(temporary),
                dynamo=False,
                opset_version=17,
                input_names=["images"],
                output_names=[output],
                dynamic_axes={"images": free, output: spatial or {0: "axis0"}},
            )
        if facts:
            model = onnx.load(str(temporary))
            onnx.helper.set_model_props(model, {METADATA_KEY: json.dumps(facts)})
            onnx.save(model, str(temporary))
        return _deviation(module, temporary, check)


def _deviation(module: Any, path: Path, shape: tuple[int, ...]) -> float:
    import torch

    images = np.random.default_rng(0).random(shape, dtype=np.float32)
    (ours,) = open_session(path).run(None, {"images": images})
    with torch.inference_mode():
        theirs = module(torch.from_numpy(images)).numpy()
    deviation = float(np.abs(ours - theirs).max())
    if not deviation <= TOLERANCE:
        raise SodaError(
            f"the exported ONNX file deviates from PyTorch by {deviation:.2g}; it was not written."
        )
    return deviation
