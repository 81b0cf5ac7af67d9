"""From options to a proxy: files, models that come later, the paper's stream."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soda_tta import Stream, load_box
from soda_tta.adaptors import Bank
from soda_tta.adaptors.compiled import compiled
from soda_tta.engine.live import STATE, LiveStream
from soda_tta.errors import BoxError, BoxUnavailable, SodaError
from soda_tta.serve import start as start_module
from soda_tta.serve.live import FixedAdaptor, StrictStream
from soda_tta.serve.local import LocalModel
from soda_tta.serve.start import STRICT, Model, begin, begin_when_ready
from soda_tta.serve.state import STREAM
from soda_tta.serve.upstream import HttpUpstream

from .conftest import PATIENCE, wait_for

FACTS: dict[str, Any] = {"mean": 0.5, "std": 0.25}


@pytest.fixture
def brighter(tmp_path: Path) -> str:
    path = tmp_path / "adaptor.safetensors"
    Bank().adaptor({"brightness": 0.1}).save(path)
    return str(path)


def test_an_adaptor_is_applied_from_the_start(start, direct, tensor, brighter) -> None:
    model = Model(model=direct.url, facts=FACTS, adaptor=brighter, freeze=True)
    proxy = start(HttpUpstream(direct.url))
    begin(proxy.proxy, model, None)
    images = tensor * np.float32(0.25) + np.float32(0.5)
    adapted = (Bank().adaptor({"brightness": 0.1})(images) - 0.5) / 0.25
    expected = direct.infer(adapted.astype(np.float32))
    np.testing.assert_allclose(proxy.infer(tensor), expected, atol=1e-5)
    assert proxy.count("images_total[adapted]") == 4 and proxy.proxy.learner is None


def test_a_model_that_comes_later_is_adapted_from_then_on(
    start, direct, tensor, brighter, monkeypatch
) -> None:
    monkeypatch.setattr(start_module, "AGAIN_AFTER", 0.01)
    model = Model(model=direct.url, facts=FACTS, adaptor=brighter, freeze=True)
    boxes = [BoxUnavailable("not yet"), BoxUnavailable("not yet"), load_box(direct.url, **FACTS)]

    def box(*_: Any) -> Any:
        each = boxes.pop(0)
        if isinstance(each, Exception):
            raise each
        return each

    monkeypatch.setattr(Model, "box", box)
    proxy = start(HttpUpstream(direct.url))
    begin_when_ready(proxy.proxy, model, None)
    while proxy.proxy.adapting.live is None:  # the timeout of tests ends it
        assert proxy.infer(tensor).shape == (4, 4)  # passes unchanged
    before = proxy.count("images_total[adapted]")
    proxy.infer(tensor)
    assert proxy.count("images_total[adapted]") == before + 4


def test_a_model_that_comes_later_and_cannot_be_adapted_is_asked_once(
    start, direct, tensor, monkeypatch
) -> None:
    monkeypatch.setattr(start_module, "AGAIN_AFTER", 0.01)
    answers = [BoxUnavailable("not yet"), BoxUnavailable("not yet"), BoxError("pass input=NAME")]
    monkeypatch.setattr(Model, "box", lambda *_: raised(answers.pop(0)))
    proxy = start(HttpUpstream(direct.url))
    begin_when_ready(proxy.proxy, Model(model=direct.url, freeze=True), None)
    wait_for(lambda: not attempts())
    assert not answers
    assert proxy.infer(tensor).shape == (4, 4)  # passes unchanged
    assert "pass input=NAME" in proxy.lines[-1] and "until the next start" in proxy.lines[-1]
    assert proxy.count("errors_total[adaptor]") == 1


def test_a_proxy_that_ends_waits_for_no_model(start, direct, monkeypatch) -> None:
    monkeypatch.setattr(start_module, "AGAIN_AFTER", PATIENCE)
    proxy = start(HttpUpstream(direct.url)).proxy
    monkeypatch.setattr(Model, "box", lambda *_: raised(BoxUnavailable("not yet")))
    begin_when_ready(proxy, Model(model=direct.url, freeze=True), None)
    assert attempts()
    proxy.close()
    wait_for(lambda: not attempts(), PATIENCE / 2)


def attempts() -> list[threading.Thread]:
    """Threads that wait to ask a model again."""
    return [each for each in threading.enumerate() if each.name == "begin"]


def raised(error: Exception) -> None:
    raise error


def test_a_model_that_cannot_be_adapted_is_refused_at_the_start(start, direct) -> None:
    model = Model(model=direct.url, facts={"output": "absent"}, freeze=True)
    with pytest.raises(BoxError):
        begin_when_ready(start(HttpUpstream(direct.url)).proxy, Model(model=direct.url + "x"), None)
    assert model.saved() is None


def test_by_default_a_proxy_learns_behind_and_continues_after_a_restart(
    start, direct, tensor, tmp_path: Path
) -> None:
    model = Model(model=direct.url, facts=FACTS)
    proxy = start(HttpUpstream(direct.url))
    begin(proxy.proxy, model, tmp_path)
    live = proxy.proxy.adapting.live
    assert isinstance(live, LiveStream)
    proxy.infer(tensor)
    wait_for(lambda: live.facts()["arrived"] == 4)
    proxy.proxy.close()  # as a drain does; it saves
    assert (tmp_path / STATE).is_file()
    again = model.live(load_box(direct.url, **FACTS), None, tmp_path)
    assert again.facts()["arrived"] == 4


def test_the_learner_asks_in_short_requests_unless_the_user_wants_others() -> None:
    url = "http://host/v2/models/tiny"
    assert Model(model=url).options == start_module.GENTLE
    assert Model(model=url, facts={"batch": 64, "workers": None}).options["batch"] == 64
    assert Model(model=url, freeze=True).options == Model(model="tiny.onnx").options == {}


def test_an_adaptor_that_was_specified_stays_as_it_is(start, direct, brighter) -> None:
    proxy = start(HttpUpstream(direct.url))
    begin(proxy.proxy, Model(model=direct.url, facts=FACTS, adaptor=brighter), None)
    assert isinstance(proxy.proxy.adapting.live, FixedAdaptor)


def test_strict_learns_before_it_answers(start, direct, tensor, tmp_path: Path) -> None:
    box = load_box(direct.url, **FACTS)
    stream = Stream(box, epochs=1, q=1, width=2)
    live = StrictStream(stream, tmp_path / STREAM)
    proxy = start(HttpUpstream(direct.url), live, box=box)
    answers = proxy.infer(tensor)
    images = tensor * np.float32(0.25) + np.float32(0.5)
    expected = direct.infer(((stream.adaptor(images) - 0.5) / 0.25).astype(np.float32))
    np.testing.assert_allclose(answers, expected, atol=1e-4)
    assert stream.images == 4 and live.facts()["queries"] == stream.ledger.total > 4
    live.save()
    again = Model(model=direct.url, mode=STRICT).live(box, None, tmp_path)
    assert isinstance(again, StrictStream) and again.stream.images == 4
    with pytest.raises(SodaError, match="learns its own adaptor"):
        saved = start_module.SavedAdaptor(Bank().build())
        Model(model=direct.url, mode=STRICT).live(box, saved, None)


def test_only_files_are_served_without_an_upstream() -> None:
    with pytest.raises(BoxError, match="is not a file"):
        LocalModel(load_box(lambda images: np.full((len(images), 2), 0.5)))


@pytest.mark.parametrize("name", ["a cat", "cats/dogs", "50%", "..", "cats?"])
def test_a_name_that_no_address_can_have_is_refused(model_box, name: str) -> None:
    with pytest.raises(BoxError, match="choose a name without spaces"):
        LocalModel(model_box, name)


def test_an_adaptor_as_a_graph_is_the_same(images) -> None:
    adaptor = Bank().adaptor({"median": 0.5, "gamma": 0.3})
    function = compiled(adaptor)
    assert function is not adaptor
    np.testing.assert_allclose(function(images), adaptor(images), atol=1e-5)
    fixed = FixedAdaptor(adaptor)
    np.testing.assert_array_equal(fixed.adapted(images)[0], function(images))


def test_a_prior_and_views_are_for_what_learns(model_box, tmp_path) -> None:
    settings = {"prior": "balanced", "views": "2"}
    live = Model(model="tiny", settings=settings).live(model_box, None, None)
    assert live.method.settings["prior"] == "balanced" and live.method.settings["views"] == "2"
    for wrong in ({"freeze": True}, {"mode": "strict"}):
        with pytest.raises(SodaError, match="learns behind the traffic"):
            Model(model="tiny", settings=settings, **wrong).live(model_box, None, None)
