"""ONNX files: opened in ONNX Runtime, and exported from PyTorch modules with a check."""

from __future__ import annotations

import io
import json
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.errors import BoxError, SodaError
from soda_tta.foreign_text import quoted
from soda_tta.storage.atomic import replacing
from soda_tta.types import Array

PROVIDER = "ExecutionProvider"  # how the name of every execution provider ends
# JSON in the metadata of a file: the facts that its shapes do not declare (mean, std, logits ...).
METADATA_KEY = "soda_tta.input"
TOLERANCE = 1e-5
ROUNDINGS = 10  # roundings of one pixel value that a deviation may amount to, if that is more
OPSET = 17  # version of the ONNX operators in exported files


def open_session(path: Path, threads: int | None = None, provider: str = "cpu") -> Any:
    """An ONNX Runtime session, with little logging.

    Parameters
    ----------
    path : Path
        An ONNX file.
    threads : int, optional
        Threads of ONNX Runtime. Default: one per physical core.
    provider : str, default "cpu"
        What runs the model: a name such as "cuda", or "CUDAExecutionProvider".
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise BoxError("ONNX files need ONNX Runtime: pip install 'soda-tta[onnx]'.") from error
    if not path.is_file():
        raise BoxError(f"{path} does not exist; pass the path of an ONNX file.")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Otherwise its threads keep spinning after a run and take the cores from the adaptor.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if threads is not None:
        options.intra_op_num_threads = threads
    wanted = find_provider(provider, onnxruntime.get_available_providers())
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=[wanted])
    except Exception as error:
        reason = quoted(error)
        raise BoxError(
            f"{path} is not an ONNX model that ONNX Runtime can load: {reason}"
        ) from error

    if session.get_providers()[0] != wanted:  # it falls back with no more than a line in its log
        raise BoxError(
            f"ONNX Runtime could not start {wanted}: is its driver installed? "
            "Leave out provider= to use the CPU."
        )
    return session


def find_provider(name: str, available: list[str]) -> str:
    """The full name of an execution provider of ONNX Runtime.

    Parameters
    ----------
    name : str
        A full name, or one without "ExecutionProvider", in any case.
    available : list of str
        The full names that this ONNX Runtime has.

    Examples
    --------
    >>> find_provider("cpu", ["CUDAExecutionProvider", "CPUExecutionProvider"])
    'CPUExecutionProvider'
    """
    by_name = {each.lower(): each for each in available}
    wanted = name.lower().removesuffix(PROVIDER.lower()) + PROVIDER.lower()
    if wanted not in by_name:
        listed = ", ".join(each.removesuffix(PROVIDER).lower() for each in available)
        raise BoxError(
            f"this ONNX Runtime has no provider {name!r}; choose from: {listed}. Others come with "
            "other packages, such as onnxruntime-gpu for cuda."
        )
    return by_name[wanted]


def external_files(path: Path) -> list[Path]:
    """The files next to an ONNX file that hold its weights; empty if it has them all.

    A file that names weights elsewhere is refused: it could have any file of this machine read.

    Parameters
    ----------
    path : Path
        An ONNX file.
    """
    # Tensors name their file under the key "location". Without it, the file need not be parsed.
    if b"location" not in path.read_bytes():
        return []
    import onnx

    tensors = onnx.load(path, load_external_data=False).graph.initializer
    external = [each for each in tensors if each.data_location == onnx.TensorProto.EXTERNAL]
    entries = [entry for tensor in external for entry in tensor.external_data]
    names = sorted({entry.value for entry in entries if entry.key == "location"})
    return [_neighbour(path, name) for name in names]


def _neighbour(path: Path, name: str) -> Path:
    """The file of that name in the folder of an ONNX file; in a cache both may be links."""
    file = path.parent / name
    folders = (path.parent.resolve(), path.resolve().parent)
    try:
        resolved = file.resolve()
        inside = any(resolved.is_relative_to(folder) for folder in folders) and resolved.is_file()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, or links in a circle
        inside = False
    if not inside:
        raise BoxError(
            f"{path} keeps weights in {quoted(name)}, which is not a file in its folder; "
            "export the model again, with its weights inside or next to it."
        )
    return file


def export_onnx(
    module: Any,
    path: Path,
    *,
    example: tuple[int, ...],
    check: tuple[int, ...],
    output: str,
    facts: dict[str, Any] | None = None,
    opset: int = OPSET,
) -> float:
    """Write a PyTorch module as an ONNX file, and compare both; returns the largest deviation.

    The file is written only if the deviation is at most `TOLERANCE`, or what a few roundings of
    the pixels amount to where the module amplifies them.

    Parameters
    ----------
    module : torch.nn.Module
    path : Path
        The file to write.
    example : tuple of int
        Shape of the images to trace the module with.
    check : tuple of int
        Shape of the images to compare with. Axes in which it differs from `example` are dynamic
        in the file.
    output : str
        Name of the output.
    facts : dict, optional
        Facts about the model (normalisation, logits ...) for the metadata of the file, where
        `OnnxBox` finds them. Default: none.
    opset : int, default 17
        Version of the ONNX operators.
    """
    try:
        import onnx
    except ImportError as error:
        raise SodaError("writing ONNX files needs onnx: pip install 'soda-tta[onnx]'.") from error
    import torch

    module = module.eval()
    dynamic = {
        axis: f"axis{axis}"
        for axis, (traced, checked) in enumerate(zip(example, check, strict=True))
        if traced != checked
    }
    # The output of an adaptor has all axes of the input, that of a classifier only the first.
    output_axes = dynamic if len(dynamic) > 1 else {0: "axis0"}
    with replacing(path) as temporary:
        _trace(
            module,
            (torch.rand(example),),
            str(temporary),
            dynamo=False,
            opset_version=opset,
            input_names=["images"],
            output_names=[output],
            dynamic_axes={"images": dynamic, output: output_axes},
        )
        if facts:
            model = onnx.load(str(temporary))
            onnx.helper.set_model_props(model, {METADATA_KEY: json.dumps(facts)})
            onnx.save(model, str(temporary))
        return _deviation(module, temporary, check)


def _trace(module: Any, *arguments: Any, **options: Any) -> None:
    """`torch.onnx.export` without its warnings, and with an error that names the remedy."""
    import torch

    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):  # a failure prints the graph
        # the tracing exporter is deprecated, but the newer one needs another package
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(module, *arguments, **options)
        except Exception as error:  # many kinds, also of the module itself
            raise SodaError(
                f"{type(module).__name__} could not be exported to ONNX: {quoted(error)}; "
                "write its forward() with operators that ONNX has."
            ) from error


def _deviation(module: Any, path: Path, shape: tuple[int, ...]) -> float:
    """The largest difference between the outputs of a module and of its ONNX file."""
    import torch

    def computed(pixels: Array) -> Array:
        with torch.inference_mode():
            outputs: Array = module(torch.from_numpy(pixels)).numpy()
        return outputs

    images = np.random.default_rng(0).random(shape, dtype=np.float32)
    (from_file,) = open_session(path).run(None, {"images": images})
    from_module = computed(images)
    deviation = float(np.abs(from_file - from_module).max())
    # An adaptor that amplifies details amplifies rounding too, and processors round differently.
    rounded = computed(np.nextafter(images, np.float32(0)))
    rounding = ROUNDINGS * float(np.abs(rounded - from_module).max())
    if not deviation <= max(TOLERANCE, rounding):
        raise SodaError(
            f"the exported ONNX file deviates from PyTorch by {deviation:.2g}; it was not written."
        )
    return deviation
