"""`load_box`: one call for every kind of deployed model."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from soda_tta.box.backends.onnx_runtime import OnnxBox
from soda_tta.box.backends.open_inference import OpenInferenceBox
from soda_tta.box.backends.python import CallableBox
from soda_tta.box.backends.torch_module import ModuleBox
from soda_tta.box.box import Box
from soda_tta.box.facts import Input
from soda_tta.box.wrappers.batched import Batched
from soda_tta.box.wrappers.retrying import Retrying, patiently
from soda_tta.errors import BoxError

INPUT_FACTS = tuple(Input.__dataclass_fields__)


def load_box(model: Any, **options: Any) -> Box:
    """Turn a deployed model into a box, whatever it is.

    `model`: the path of an ONNX file; `http(s)://host/v2/models/NAME` (Open Inference Protocol);
    `package.module:function` or `file.py:function`; a PyTorch module; any callable; or a box already.
    `options` state what the model itself does not say: `mean`, `std`, `pixel_range`, `layout`, `channels`,
    `size`, `logits`, `partial`, `batch`, and for remote models `timeout`, `workers`, `api_key_env` ...

    >>> import numpy as np
    >>> load_box(lambda images: np.full((len(images), 2), 0.5))
    CallableBox(<lambda>)
    """
    options = {name: value for name, value in options.items() if value is not None}
    for name in ("batch", "timeout", "workers", "threads"):
        if not options.get(name, 1) > 0:
            raise BoxError(f"{name} is {options[name]}; it must be more than 0.")
    if isinstance(model, Box):
        if options:
            raise BoxError("a box already states its input; give the options where it is made.")
        return model
    if isinstance(model, str | Path):
        return _from_text(str(model), options)
    if _is_module(model):
        return _build(ModuleBox, model, _with_input(options))
    if callable(model):
        return _build(CallableBox, model, _with_input(options))
    raise BoxError(
        f"{type(model).__name__} is not a model; give a path, an address, a module or a function."
    )


def _is_module(model: Any) -> bool:
    torch = sys.modules.get("torch")  # a module cannot be here unless its library is
    return torch is not None and isinstance(model, torch.nn.Module)


def _from_text(text: str, options: dict[str, Any]) -> Box:
    if text.startswith(("http://", "https://")):
        if "/v2/models/" not in text:
            raise BoxError(f"{text} names no model; give http(s)://host:port/v2/models/NAME.")
        workers = options.pop("workers", 4)
        remote = patiently(lambda: _build(OpenInferenceBox, text, options, "workers"), attempts=3)
        return Batched(Retrying(remote), workers=workers)
    if text.endswith(".onnx"):
        return _build(OnnxBox, text, options)
    if text.endswith((".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin")):
        raise BoxError(
            f"{text} may be a pickle, which can run code when it is opened; export the model to ONNX."
        )
    if ":" in text:
        model = import_function(text)
        plain = callable(model) and not isinstance(model, Box) and not _is_module(model)
        return load_box(model, **options, **({"source": file_digest(text)} if plain else {}))
    raise BoxError(
        f"{text} is no model this package knows; give an .onnx file, http://.../v2/models/NAME or module:function."
    )


def _with_input(options: dict[str, Any]) -> dict[str, Any]:
    facts = {name: options.pop(name) for name in INPUT_FACTS if name in options}
    if facts:
        options["input"] = Input(**facts)
    return options


def _build(kind: Callable[..., Box], model: Any, options: dict[str, Any], *beside: str) -> Box:
    options = dict(options)  # a server that is not there yet is asked again with all of them
    partial = options.pop("partial", False)
    accepted = {*inspect.signature(kind).parameters, *INPUT_FACTS}
    unknown = sorted(set(options) - accepted)
    if unknown:
        ours = {"url", "path", "module", "function", "stated", "input", "source"}
        known = ", ".join(sorted((accepted | {"partial"} | set(beside)) - ours))
        name = model if isinstance(model, str) else type(model).__name__
        raise BoxError(
            f"{', '.join(unknown)} does not apply to {name}; what can be stated: {known}."
        )
    box = kind(model, **options)
    box.partial = partial
    return box


def importable_from(folder: Path) -> None:
    """As `python file.py` and `python -m` would; a console script does not."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@contextmanager
def as_imported(module: ModuleType) -> Iterator[None]:
    """Among the imported modules, where a dataclass looks for its own; not in the place of another of that name."""
    other = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        if other is not None:
            sys.modules[module.__name__] = other


def file_digest(text: str) -> str:
    """Of the file that `package.module:name` or `file.py:name` lies in: a function is also what it calls there."""
    place = text.rpartition(":")[0]
    file = place if place.endswith(".py") else getattr(sys.modules.get(place), "__file__", None)
    return "" if file is None else f":{hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12]}"


def import_function(text: str) -> Any:
    """The object named by `package.module:name` or `path/to/file.py:name`."""
    place, _, name = text.rpartition(":")
    try:
        if place.endswith(".py"):
            if not Path(place).is_file():
                raise BoxError(f"{place} does not exist.")
            spec = importlib.util.spec_from_file_location(Path(place).stem, place)
            assert spec is not None and spec.loader is not None
            importable_from(Path(place).resolve().parent)
            module = importlib.util.module_from_spec(spec)
            with as_imported(module):
                spec.loader.exec_module(module)
        else:
            importable_from(Path.cwd())
            module = importlib.import_module(place)
    except BoxError:
        raise
    except Exception as error:  # the file is the user's: it may raise anything
        raise BoxError(
            f"{place or text} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(getattr(module, name, None)):
        raise BoxError(f"{place} has no function {name!r}.")
    return getattr(module, name)
