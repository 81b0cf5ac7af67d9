"""The dashboard in a real browser: numbers move, buttons work, and names of sources stay text."""

from __future__ import annotations

import http.client
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.engine.live_traffic import Templates, scenes
from tests.serve.conftest import listening

from soda_tta.adaptors import Adaptor
from soda_tta.box import load_box
from soda_tta.engine.live import LiveStream
from soda_tta.protocols.open_inference import RequestedOutput, Tensor, encode_request
from soda_tta.serve.answers import Answers
from soda_tta.serve.keys import Keys
from soda_tta.serve.local import LocalModel
from soda_tta.serve.logs import Log
from soda_tta.serve.pixels import Pixels
from soda_tta.serve.proxy import Proxy

from .conftest import Visit

pytestmark = pytest.mark.browser
ADMIN = "admin-key-0123456789ab"
EVIL = "<img src=x onerror=alert(1)>"
PHONE, DESK = 380, 1000
PATIENCE = 240_000  # milliseconds until something is learned, on a busy machine
WIDTHS = """Promise.all([...document.images].map(
    image => image.decode().then(() => image.naturalWidth, () => 0)))"""
SCREENSHOT = os.environ.get("SODA_TTA_SCREENSHOT")  # where to keep one for the manual (slower)


def templates_file(path: Path) -> Path:
    """The model of the live tests as an ONNX file."""
    weights = {
        "half": np.float32(0.5),
        "matrix": (100 * Templates().weights.T).astype(np.float32),
        "first": np.array([1.5, 0, 0, 0], np.float32),
    }
    nodes = [
        helper.make_node("Sub", ["images", "half"], ["centred"]),
        helper.make_node("Flatten", ["centred"], ["row"]),
        helper.make_node("MatMul", ["row", "matrix"], ["matches"]),
        helper.make_node("Add", ["matches", "first"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"]),
    ]
    graph = helper.make_graph(
        nodes,
        "scenes",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 16, 16])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


class Traffic(threading.Thread):
    """Clean images, then faded ones until it is stopped."""

    def __init__(self, port: int, camera: str) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.camera = camera
        self.ended = threading.Event()

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        count = 0
        while not self.ended.wait(0.3 if SCREENSHOT else 0.05):
            images = scenes(20, count, faded=count >= 20)[0]
            wanted = [RequestedOutput("probabilities", True)]
            body, headers = encode_request([Tensor("images", images)], wanted, binary=True)
            own = {**headers, "X-Camera": self.camera}
            connection.request("POST", "/v2/models/scenes/infer", body, own)
            assert connection.getresponse().read()
            count += 1

    def __enter__(self) -> Traffic:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.join()


@pytest.fixture
def served(tmp_path: Path, monkeypatch) -> Iterator[tuple[Any, int]]:
    monkeypatch.setattr("soda_tta.serve.learner.NICE", 0)  # others on this machine do not wait
    box = load_box(str(templates_file(tmp_path / "scenes.onnx")))
    log = Log(lambda line: None)
    proxy = Proxy(LocalModel(box, "scenes"), keys=Keys(None, ADMIN), key_header="X-Camera", log=log)

    def fresh() -> LiveStream:
        def listen(event: Any) -> None:
            proxy.audit.show(event.facts())

        return LiveStream(box, buffer=400, learn_budget=6, listener=listen)

    pixels, answers = Pixels("images", box.input), Answers(box, "probabilities")
    proxy.begin(pixels, fresh(), answers, saves=False, fresh=fresh)
    with listening(proxy) as running:
        yield proxy, running.port


def connected(visit: Visit) -> Any:
    """The page, with the admin key typed into its field."""
    page = visit.page
    page.set_default_timeout(PATIENCE)
    page.get_by_label("Admin key").fill(ADMIN)
    page.keyboard.press("Enter")
    page.wait_for_selector("#model >> text=scenes")
    return page


def number_in(page: Any, name: str) -> float:
    return float(page.evaluate(f"() => {value_of(name)}"))


def over(name: str, value: float) -> str:
    """JavaScript that waits for a number: the page asks every two seconds, a test cannot know."""
    return f"() => {value_of(name)} > {value}"


def value_of(name: str) -> str:
    return f'Number(document.getElementById("{name}").textContent.replace(/[,–]/g, ""))'


@pytest.mark.timeout(900)
def test_numbers_move_and_roll_back_works(browser, served, tmp_path: Path) -> None:
    proxy, port = served
    camera = "north" if SCREENSHOT else EVIL
    address = f"http://127.0.0.1:{port}/"
    with Traffic(port, camera), Visit(browser, address, DESK) as visit:
        assert visit.external_requests() == []  # nothing is asked for without the key
        page = connected(visit)
        page.wait_for_function(over("request-rate", 0))
        before = number_in(page, "requests")
        page.wait_for_selector("#timeline .promoted")
        page.wait_for_selector("#conditions >> text=Adapted: mean confidence")
        page.wait_for_selector("#conditions >> text=low contrast")
        page.wait_for_function(over("requests", before))
        page.wait_for_function(over("learner-total", 0))
        page.wait_for_selector("#images figcaption >> text=before and after")
        assert set(page.evaluate(WIDTHS)) == {16}
        assert camera in page.inner_text("#conditions")
        if SCREENSHOT:
            page.screenshot(path=SCREENSHOT, full_page=True)
        with page.expect_download() as download:
            page.get_by_role("button", name="Download adaptor").press("Enter")
        download.value.save_as(tmp_path / "adaptor.safetensors")
        assert "contrast" in Adaptor.load(tmp_path / "adaptor.safetensors").describe()
        page.get_by_role("button", name="Roll back").press("Enter")  # by keyboard
        page.wait_for_selector("#message >> text=Rolled back.")
        page.wait_for_selector("#timeline .rolled-back")
        page.get_by_role("button", name="Pause").press("Space")
        page.wait_for_selector("#timeline .paused")
        page.wait_for_selector("#state >> text=/^paused$/")
        assert proxy.adapting.paused
        assert visit.messages == []
        allowed = (address, "data:", f"blob:{address}")
        assert all(url.startswith(allowed) for url in visit.requests)
        assert ADMIN not in str(visit.requests) and page.evaluate("localStorage.length") == 0


def test_a_wrong_key_is_said_and_the_page_fits_a_phone(browser, served) -> None:
    _, port = served
    colours = []
    for scheme in ("light", "dark"):
        with Visit(browser, f"http://127.0.0.1:{port}/", PHONE, scheme) as visit:
            page = connected(visit)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= PHONE and visit.messages == []
            colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            page.get_by_label("Admin key").fill("wrong")
            page.get_by_role("button", name="Pause").click()
            page.wait_for_selector("#message >> text=a valid admin key is missing")
    assert colours[0] != colours[1]
