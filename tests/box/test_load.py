"""`load_box` picks by what it is given, and says what it takes otherwise."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from soda_tta import load_box
from soda_tta.box import Batched, CallableBox, ModuleBox, OnnxBox
from soda_tta.box.wrappers.retrying import patiently
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


def test_a_box_stays_what_it_is() -> None:
    box = CallableBox(halves)
    assert load_box(box) is box
    assert load_box(box, mean=None) is box
    with pytest.raises(BoxError, match="already states its input"):
        load_box(box, mean=(0.5,))


def test_a_function_in_a_file_is_named_after_a_colon(source: Path) -> None:
    assert load_box(f"{source}:classify", pixel_range=0.5)(GREY).tolist() == [[0.25, 0.75]] * 2


def test_a_function_in_an_installed_module_is_named_after_a_colon(
    monkeypatch, tmp_path: Path
) -> None:
    (tmp_path / "deployed_model.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    assert load_box("deployed_model:classify")(GREY).tolist() == [[0.5, 0.5]] * 2


def test_an_onnx_path_goes_to_onnx_runtime_as_text_or_as_a_path(tiny_onnx) -> None:
    path = tiny_onnx()
    assert isinstance(load_box(path), OnnxBox)
    assert isinstance(load_box(str(path)), OnnxBox)


def test_an_address_becomes_concurrent_retried_requests(server) -> None:
    box = load_box(server.url, workers=3, batch=5, logits=False)
    assert isinstance(box, Batched) and (box.workers, box.batch) == (3, 5)
    assert repr(box) == f"Batched(Retrying(OpenInferenceBox({server.url!r})))"


def test_options_that_are_none_are_not_stated() -> None:
    assert load_box(halves, mean=None, logits=None, certificate_authority=None).input.mean == (
        0,
        0,
        0,
    )


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
    "a name": ("resnet50", "resnet50 is no model this package knows; give an .onnx file"),
    "an address without a model": (
        "http://127.0.0.1:1/",
        r"names no model; give http\(s\)://host:port/v2/models/NAME",
    ),
    "a missing onnx file": ("absent.onnx", "absent.onnx does not exist"),
    "a missing python file": ("absent.py:f", "absent.py does not exist"),
    "a missing module": ("no_such_package.module:f", "no_such_package.module cannot be imported"),
    "a missing function": ("math:no_such_function", "math has no function 'no_such_function'"),
    "no module": (":f", "cannot be imported"),
    "a relative module": (".here:f", "cannot be imported"),
    "a number": (42, "int is not a model; give a path, an address, a module or a function"),
    "nothing": (None, "NoneType is not a model"),
}


@pytest.mark.parametrize(("model", "sentence"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_no_model_is_refused_with_what_would_be(model: object, sentence: str) -> None:
    with pytest.raises(BoxError, match=sentence):
        load_box(model)


def test_a_file_may_have_dataclasses_and_neighbours(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "json.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport zz_neighbour\n"
        "@dataclass\nclass Own:\n    number: int = 1\ndef f(images):\n    return zz_neighbour.answer(images)\n"
    )
    (tmp_path / "zz_neighbour.py").write_text(
        "def answer(images):\n    return [[0.5, 0.5]] * len(images)\n"
    )
    assert load_box(f"{tmp_path / 'json.py'}:f")(GREY).tolist() == [[0.5, 0.5]] * 2
    assert "loads" in vars(sys.modules["json"])  # a file takes the place of no module of that name


def test_something_that_is_no_function_is_refused(source: Path) -> None:
    with pytest.raises(BoxError, match="has no function 'PI'"):
        load_box(f"{source}:PI")


@pytest.mark.parametrize(
    ("text", "found"),
    [("def f(:", "SyntaxError"), ("1 / 0", "ZeroDivisionError"), ("import zzz", "zzz")],
)
def test_a_file_that_cannot_be_run_says_why(text: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(BoxError, match=f"broken.py cannot be imported: .*{found}"):
        load_box(f"{path}:f")


@pytest.mark.parametrize(
    "known", ["logits", "mean", "std", "pixel_range", "layout", "channels", "size", "batch"]
)
def test_unknown_options_are_named_beside_the_known_ones(known: str, tiny_onnx) -> None:
    for model in (halves, nn.Flatten(), tiny_onnx()):
        with pytest.raises(
            BoxError, match=rf"sharpness does not apply to .*what can be stated: .*\b{known}\b"
        ):
            load_box(model, sharpness=1)


def test_an_option_of_another_kind_of_model_is_refused(tiny_onnx) -> None:
    with pytest.raises(BoxError, match="api_key_env, workers does not apply"):
        load_box(tiny_onnx(), workers=4, api_key_env="KEY")


def test_the_options_of_a_remote_model_are_listed(server) -> None:
    with pytest.raises(BoxError, match=r"sharpness does not apply.*\btimeout\b.*\bworkers\b"):
        load_box(server.url, sharpness=1)


def test_a_function_that_takes_bytes_gets_0_to_255() -> None:
    seen = []
    load_box(lambda images: seen.append(images) or halves(images), dtype="uint8", layout="NHWC")(
        GREY
    )
    assert seen[0].dtype == np.uint8 and (seen[0] == 128).all()


def test_a_senseless_option_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(BoxError, match="choose NCHW or NHWC"):
        load_box(halves, layout="CHWN")


@pytest.mark.parametrize(
    "senseless", [{"batch": 0}, {"timeout": -1}, {"batch": -3}, {"timeout": float("nan")}]
)
def test_no_images_a_request_and_no_time_to_wait_make_no_sense(senseless: dict) -> None:
    with pytest.raises(BoxError, match="it must be more than 0"):
        load_box(halves, **senseless)


def test_a_server_that_is_slow_to_come_is_loaded_with_all_that_was_stated(monkeypatch) -> None:
    tries = []

    class Slow(CallableBox):
        def __init__(self, url: str) -> None:
            tries.append(url)
            if len(tries) < 3:
                raise BoxUnavailable("not there yet.")
            super().__init__(halves)

    monkeypatch.setattr("soda_tta.box.load.OpenInferenceBox", Slow)
    monkeypatch.setattr(
        "soda_tta.box.load.patiently", partial(patiently, sleep=lambda seconds: None)
    )
    box = load_box("http://host/v2/models/cats", partial=True)
    assert len(tries) == 3 and box.partial
