"""`load_box`: one call for every kind of deployed model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from soda_tta.box.addresses import FORM, refuse_other_addresses
from soda_tta.box.backends.backend import Backend
from soda_tta.box.backends.onnx_runtime import OnnxBox
from soda_tta.box.backends.open_inference import OpenInferenceBox
from soda_tta.box.backends.open_inference_grpc import OpenInferenceGrpcBox
from soda_tta.box.backends.python import CallableBox
from soda_tta.box.backends.rest import RestBox
from soda_tta.box.backends.tflite import TfliteBox
from soda_tta.box.backends.torch_module import ModuleBox
from soda_tta.box.box import Box
from soda_tta.box.wrappers.undecided import Undecided
from soda_tta.errors import BoxError
from soda_tta.user_code import load_object, source_digest

# The first that takes a model loads it. To add a kind of model, add its class here.
BACKENDS: tuple[type[Backend], ...] = (
    OpenInferenceBox,
    OpenInferenceGrpcBox,
    RestBox,
    OnnxBox,
    TfliteBox,
    ModuleBox,
    CallableBox,
)

PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin")
AT_LEAST_0 = ("retries",)
POSITIVE = ("batch", "timeout", "workers", "threads", "class_count", "max_qps", "max_concurrent")


def load_box(model: Any, **options: Any) -> Box:
    """Turn a deployed model of any kind into a box.

    The options state what the model does not declare itself. An option that is None counts as
    not stated. An option that the kind of model does not have is an error. A *served* model is one
    with an address, over HTTP or gRPC.

    Parameters
    ----------
    model : str, Path, torch.nn.Module, callable or Box
        The path of an ONNX or TFLite file; `http(s)://host:port/v2/models/NAME` or
        `grpc(s)://host:port/NAME` (Open Inference Protocol), or several of these addresses,
        separated by commas, if several servers have the same model;
        a TOML file that describes a REST API;
        `package.module:function` or `file.py:function`; a PyTorch module; any callable; or a box,
        which is returned as it is.
    input : {"auto"}, optional
        Find the input convention from images, see `find_convention`: everything below that neither
        you state nor the model declares. `adapt` and `examine` do it. Default: the defaults below.
    conventions : dict, optional
        With `input="auto"`: your own normalisations to try, by name.
    mean, std : float or three floats, default 0 and 1
        Normalisation `(pixel * pixel_range - mean) / std`, per channel in the model's order.
    pixel_range : float, default 1, or 255 if the model takes bytes
        Largest pixel value before normalisation.
    layout : {"NCHW", "NHWC"}, default as the model's shapes declare it, otherwise "NCHW"
        Order of the axes.
    channels : {"RGB", "BGR", "L"}, default "RGB", or "L" if the model takes one channel
        Order of the channels; "L" is one grey channel.
    size : int or (int, int), default as the model declares it, otherwise any
        Height and width in pixels; images of another size are resized.
    crop : float, default none
        Share of the largest centre window that is resized to `size`: 1 for the whole window, 0.875
        for the usual view of ImageNet. Without it the whole image is stretched. Images that have
        the size stay as they are.
    turn : {0, 90, 180, 270}, default 0
        Degrees by which images are turned clockwise.
    mirror : bool, default False
        Images are mirrored left to right, after the turn.
    dtype : {"float32", "float16", "uint8", "int8"}, default as the model declares it or "float32"
        Element type of the input tensor.
    quantisation : (float, int), default as the model declares it
        Scale and zero point of quantised input. Default without any: bytes are the pixels.
    logits : bool, default False
        The model returns logits instead of probabilities.
    partial : bool, default False
        The model returns only the top classes, or rounded probabilities. The missing probability
        is shared by the absent classes.
    background : bool, default False
        Class 0 of the model is the background. It is left out, and class 1 becomes class 0.
    batch : int, default 64 (256 for a callable, up to 32 for a PyTorch module, 1 for a REST API)
        Images per request.
    output : str, default the only one
        Name of the output with the class scores. ONNX and TFLite files, and served models.
    class_count : int, default as many as the model returns
        Number of all classes, if the model returns only its top classes as scores and indices.
        ONNX files.
    threads : int, default one per physical core (TFLite: at most 4)
        Threads of ONNX Runtime or LiteRT. ONNX and TFLite files.
    device : str, default where the module is
        Where a PyTorch module runs: "cpu", "cuda" or "mps".
    provider : str, default "cpu"
        Execution provider of ONNX Runtime, such as "cuda". ONNX files.
    class_names : sequence of str, default those of the label file inside the TFLite file
        Names of the classes. TFLite files.
    timeout : float, default 30 for a served model, no limit for a callable
        Seconds for a whole request, up to the last byte of the response.
    workers : int, default 4 per server, at most 64
        Requests in flight at once. Served models.
    max_qps : float, default no limit
        Queries (images) per second, at most; requests are spread evenly. Served models.
    max_concurrent : int, default no limit
        Requests in flight at once, at most, whatever `workers` and hedges want. Served models.
    replicas : {"dns"}, optional
        Every IP address behind the name in the address is a server of its own.
    hedge : float, default 0
        Share of requests that may be sent to a second server, if the first takes three times as
        long as usual. Counted as `hedged`, and within the budget. Several servers only.
    retries : int, default 4
        How often a request without a response is sent again. Images that may have reached the
        model are counted each time, as `retried`. Served models.
    binary : bool, default True if the server offers it
        Send binary tensors instead of JSON. Models over HTTP; over gRPC they are always binary.
    api_key_env : str, default none
        Environment variable that holds the API key. Served models.
    api_key_header : str, default "Authorization"
        Header for the key; in "Authorization" it is a bearer token. Served models.
    certificate_authority : str or Path, default those of the system
        PEM file of a certificate authority to trust. Served models.

    Examples
    --------
    >>> import numpy as np
    >>> load_box(lambda images: np.full((len(images), 2), 0.5))
    CallableBox(<lambda>)
    """
    options = {name: value for name, value in options.items() if value is not None}
    _check_numbers(options)
    model = str(model) if isinstance(model, Path) else model
    if isinstance(model, Box):
        if options:
            raise BoxError(
                f"{model!r} is already a box; pass {', '.join(options)} where the box is made."
            )
        return model
    if isinstance(options.get("input"), str):
        return _undecided(model, options)
    for backend in BACKENDS:
        if backend.takes(model):
            return backend.load(model, options)
    if isinstance(model, str):
        return _from_user_code(model, options)
    raise BoxError(
        f"{type(model).__name__} is not a model; "
        "pass a path, an address, a PyTorch module or a function."
    )


def _check_numbers(options: dict[str, Any]) -> None:
    for name in POSITIVE:
        if not options.get(name, 1) > 0:
            raise BoxError(f"{name} is {options[name]}; it must be greater than 0.")
    for name in AT_LEAST_0:
        if not options.get(name, 0) >= 0:
            raise BoxError(f"{name} is {options[name]}; it must be 0 or more.")
    if not 0 <= options.get("hedge", 0) <= 1:
        raise BoxError(f"hedge is {options['hedge']}; it must be a share from 0 to 1.")


def _undecided(model: Any, options: dict[str, Any]) -> Box:
    """The box of a model whose input convention is to be found."""
    wanted = options.pop("input")
    own = options.pop("conventions", None)
    if wanted != "auto":
        raise BoxError(f"input={wanted!r} is not valid; use 'auto', or state the convention.")
    box = load_box(model, **options)
    return Undecided(box, {*box.declared, *options}, own)


def _from_user_code(reference: str, options: dict[str, Any]) -> Box:
    """The box of `module:function` or `file.py:function`."""
    if reference.endswith(PICKLES):
        raise BoxError(
            f"{reference} may be a pickle, which can run code when it is opened; "
            "export the model to ONNX."
        )
    refuse_other_addresses(reference)
    if ":" not in reference:
        raise BoxError(
            f"{reference!r} is not a model; "
            f"pass an .onnx or .tflite file, {FORM} or module:function."
        )
    model = load_object(reference, kind="function", error_class=BoxError)
    backend = next((each for each in BACKENDS if each.takes(model)), None)
    if backend is CallableBox and not isinstance(model, Box):
        options = {**options, "source": source_digest(reference)}
    return load_box(model, **options)
