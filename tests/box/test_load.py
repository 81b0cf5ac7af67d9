"""`load_box` chooses the back end by the model, and says what it takes otherwise."""

import inspect
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from soda_tta import load_box
from soda_tta.box import Batched, CallableBox, ModuleBox, OnnxBox, OpenInferenceBox
from soda_tta.box.facts import FACTS
from soda_tta.box.load import BACKENDS
from soda_tta.box.wrappers.retrying import retry
from soda_tta.errors import BoxError, BoxUnavailable

GREY = np.full((2, 3, 4, 4), 0.5, np.float32)
SOURCE = """
import numpy as np

PI = 3.14

def classify(images):
    return np.tile([images.mean(), 1 - images.mean()], (len(images), 1))
"""


def halves(images: np.ndarray) -> np.ndarray:
    return np.full((len(images), 2), 0.5)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "my model.py"
    path.write_text(SOURCE)
    return path


def test_a_function_becomes_a_box() -> None:
    box = load_box(halves)
    assert isinstance(box, CallableBox)
    assert box(GREY).tolist() == [[0.5, 0.5]] * 2


def test_a_pytorch_module_becomes_a_white_box() -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(48, 3))
    box = load_box(module, logits=True, mean=(0.5,), batch=4)
    assert isinstance(box, ModuleBox)
    assert (
        box.module is module and box.logits and box.batch == 4 and box.input.mean == (0.5, 0.5, 0.5)
    )


def test_a_box_is_returned_unchanged() -> None:
    box = CallableBox(halves)
    assert load_box(box) is box
    assert load_box(box, mean=None) is box
    with pytest.raises(BoxError, match="is already a box; pass mean where the box is made"):
        load_box(box, mean=(0.5,))


def test_a_function_is_loaded_from_a_file(source: Path) -> None:
    assert load_box(f"{source}:classify", pixel_range=0.5)(GREY).tolist() == [[0.25, 0.75]] * 2


def test_a_function_is_loaded_from_a_module(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "deployed_model.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    assert load_box("deployed_model:classify")(GREY).tolist() == [[0.5, 0.5]] * 2


def test_an_onnx_file_is_a_string_or_a_path(tiny_onnx) -> None:
    path = tiny_onnx()
    assert isinstance(load_box(path), OnnxBox)
    assert isinstance(load_box(str(path)), OnnxBox)


def test_an_address_becomes_concurrent_retried_requests(server) -> None:
    box = load_box(server.url, workers=3, batch=5, logits=False)
    assert isinstance(box, Batched) and (box.workers, box.batch) == (3, 5)
    assert repr(box) == f"Batched(Retrying(OpenInferenceBox({server.url!r})))"


def test_options_that_are_none_count_as_not_stated() -> None:
    box = load_box(halves, mean=None, logits=None, certificate_authority=None)
    assert box.input.mean == (0, 0, 0) and box.logits is False


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin"])
def test_pickles_are_never_opened(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"cos\nsystem\n(S'touch opened'\ntR.")
    with pytest.raises(
        BoxError,
        match="may be a pickle, which can run code when it is opened; export the model to ONNX",
    ):
        load_box(path)


UNKNOWN = {
    "a name": ("resnet50", "'resnet50' is not a model; pass an .onnx or .tflite file"),
    "an address without a model": (
        "http://127.0.0.1:1/",
        r"names no model; pass http\(s\)://host:port/v2/models/NAME",
    ),
    "a missing onnx file": ("absent.onnx", "absent.onnx does not exist"),
    "a missing python file": ("absent.py:f", "absent.py does not exist"),
    "a missing module": ("no_such_package.module:f", "no_such_package.module cannot be imported"),
    "a missing function": ("math:no_such_function", "math has no function 'no_such_function'"),
    "no module": (":f", "cannot be imported"),
    "a relative module": (".here:f", "cannot be imported"),
    "a number": (42, "int is not a model; pass a path, an address, a PyTorch module or a function"),
    "nothing": (None, "NoneType is not a model"),
}


@pytest.mark.parametrize(("model", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_anything_else_is_refused_with_what_is_accepted(model: object, message: str) -> None:
    with pytest.raises(BoxError, match=message):
        load_box(model)


def test_an_object_that_is_not_a_function_is_refused(source: Path) -> None:
    with pytest.raises(BoxError, match="has no function 'PI'"):
        load_box(f"{source}:PI")


def test_a_file_that_cannot_be_imported_is_a_box_error(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("1 / 0")
    with pytest.raises(BoxError, match=r"broken.py cannot be imported: ZeroDivisionError"):
        load_box(f"{path}:f")


def test_the_fingerprint_covers_the_whole_file_of_a_function(source: Path) -> None:
    first = load_box(f"{source}:classify").fingerprint()
    assert load_box(f"{source}:classify").fingerprint() == first
    source.write_text(SOURCE.replace("3.14", "3.15"))
    assert load_box(f"{source}:classify").fingerprint() != first


@pytest.mark.parametrize(
    "valid",
    ["logits", "partial", "mean", "std", "pixel_range", "layout", "channels", "size", "batch"],
)
def test_an_unknown_option_is_named_with_the_valid_ones(valid: str, tiny_onnx) -> None:
    for model in (halves, nn.Flatten(), tiny_onnx()):
        with pytest.raises(
            BoxError, match=rf"does not have the option sharpness; choose from: .*\b{valid}\b"
        ):
            load_box(model, sharpness=1)


def test_an_option_of_another_kind_of_model_is_refused(tiny_onnx) -> None:
    with pytest.raises(BoxError, match="does not have the option api_key_env, workers"):
        load_box(tiny_onnx(), workers=4, api_key_env="KEY")


def test_the_options_of_a_remote_model_are_listed(server) -> None:
    with pytest.raises(BoxError, match=r"the option sharpness; .*\btimeout\b.*\bworkers\b"):
        load_box(server.url, sharpness=1)


def test_a_function_that_takes_bytes_gets_values_up_to_255() -> None:
    received = []

    def classify(images: np.ndarray) -> np.ndarray:
        received.append(images)
        return halves(images)

    load_box(classify, dtype="uint8", layout="NHWC")(GREY)
    assert received[0].dtype == np.uint8 and (received[0] == 128).all()


def test_an_invalid_option_is_refused_before_any_query() -> None:
    with pytest.raises(BoxError, match="choose NCHW or NHWC"):
        load_box(halves, layout="CHWN")


@pytest.mark.parametrize(
    "invalid", [{"batch": 0}, {"timeout": -1}, {"batch": -3}, {"timeout": float("nan")}]
)
def test_options_that_must_be_positive_are_checked(invalid: dict) -> None:
    with pytest.raises(BoxError, match="it must be greater than 0"):
        load_box(halves, **invalid)


def test_a_server_that_is_not_up_yet_is_retried_with_the_same_options(monkeypatch) -> None:
    urls = []

    class Slow(OpenInferenceBox):
        def __init__(self, url: str) -> None:
            urls.append(url)
            if len(urls) < 3:
                raise BoxUnavailable("not up yet.")

    monkeypatch.setattr("soda_tta.box.load.BACKENDS", (Slow,))
    monkeypatch.setattr(
        "soda_tta.box.backends.remote.retry", partial(retry, sleep=lambda seconds: None)
    )
    box = load_box("http://host/v2/models/cats", partial=True)
    assert len(urls) == 3 and box.partial


def test_a_back_end_is_one_class_in_the_table(monkeypatch) -> None:
    class Constant(CallableBox):
        @classmethod
        def takes(cls, model: object) -> bool:
            return model == "constant"

        def __init__(self, model: str, *, logits: bool = False) -> None:
            super().__init__(halves, logits=logits)

    monkeypatch.setattr("soda_tta.box.load.BACKENDS", (Constant, *BACKENDS))
    assert isinstance(load_box("constant", logits=True), Constant)
    assert isinstance(load_box(halves), CallableBox)
    with pytest.raises(BoxError, match="constant does not have the option batch"):
        load_box("constant", batch=3)


def test_the_back_end_of_the_documentation_works(tmp_path: Path, monkeypatch) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-box.md"
    first, *_ = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    exec(first, names)
    monkeypatch.setattr("soda_tta.box.load.BACKENDS", (names["LinearBox"], *BACKENDS))
    file = tmp_path / "colours.weights.txt"
    np.savetxt(file, np.zeros((3, 4)))
    box = load_box(str(file), size=8)
    np.testing.assert_allclose(box(GREY), np.full((len(GREY), 4), 0.25))
    assert box.input.size == (8, 8)


def test_every_option_is_documented() -> None:
    documented = inspect.getdoc(load_box)
    options = {*FACTS, *(name for backend in BACKENDS for name in backend.options())}
    assert [name for name in sorted(options) if f"{name} :" not in documented] == ["mean"]
    assert "mean, std :" in documented


def test_importing_the_package_imports_no_heavy_library() -> None:
    heavy = ["torch", "onnx", "onnxruntime", "httpx", "grpc"]
    code = f"import sys, soda_tta.box; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
