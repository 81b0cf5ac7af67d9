"""The dashboard: its page, its facts, its images, and what its buttons do."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.engine.live_traffic import Templates, scenes

from soda_tta.adaptors import Adaptor, Bank
from soda_tta.engine.live import STATE, LiveStream
from soda_tta.engine.live_events import LearningFailed
from soda_tta.serve.dashboard import summary
from soda_tta.serve.keys import Keys
from soda_tta.serve.live import FixedAdaptor
from soda_tta.serve.logs import Log
from soda_tta.serve.metrics import Metrics
from soda_tta.serve.recent import MOST, SIDE, Recent
from soda_tta.serve.start import Model, begin
from soda_tta.serve.state import Audit
from soda_tta.serve.upstream import HttpUpstream

from .conftest import PATH, Darker, Served, error_of, message, wait_for

CLIENT, ADMIN = "client-key-0123456789", "admin-key-0123456789ab"
BEARER = {"Authorization": f"Bearer {ADMIN}"}
EVIL = "<img src=x onerror=alert(1)>"


def data(proxy: Served, path: str = "/control/dashboard", **headers: str) -> Any:
    status, _, content = proxy.ask("GET", path, b"", headers)
    assert status == 200, content
    return json.loads(content)


def post(proxy: Served, path: str) -> tuple[int, Any]:
    status, _, content = proxy.ask("POST", path)
    return status, json.loads(content)


@pytest.fixture
def stream() -> LiveStream:
    """Has seen 400 images of a camera with an ugly name, and adapts them; it never asks."""
    model = Templates()
    stream = LiveStream(model, buffer=400, learn_budget=0)
    images = scenes(400, 1)[0]
    stream.arrived(images, model(images), EVIL)
    while stream.learn():
        pass
    source = stream.learner.sources[EVIL]
    condition = source.conditions[0]
    condition.theta = np.full(len(condition.theta), 0.1)
    condition.adaptor = 1
    for item in source.buffer.items[:100]:
        item.adaptor = 1
    source.renew_shelf()
    stream.publish()
    return stream


def test_the_page_has_no_data_and_needs_no_other_site(proxied) -> None:
    proxy = proxied(Darker(), keys=Keys(CLIENT, ADMIN))
    status, headers, content = proxy.ask("GET", "/")
    page = content.decode()
    assert status == 200 and headers["content-type"] == "text/html; charset=utf-8"
    assert 'data-needs-key="yes"' in page and "NONCE" not in page and "tiny" not in page
    assert "http://" not in page and "https://" not in page and "innerHTML" not in page
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    nonce = policy.partition("'nonce-")[2].partition("'")[0]
    assert page.count(f'nonce="{nonce}"') == 2
    assert nonce not in proxy.ask("GET", "/")[1]["content-security-policy"]


def test_the_facts_need_the_admin_key(proxied) -> None:
    proxy = proxied(Darker(), keys=Keys(CLIENT, ADMIN))
    paths = ("dashboard", "images", "adaptor", "roll-back", "reset")
    for path in paths:
        for headers in ({}, {"Authorization": f"Bearer {CLIENT}"}):
            assert proxy.ask("POST", f"/control/{path}", b"", headers)[0] == 401
    assert data(proxy, **BEARER)["model"] == "tiny"


def test_requests_queries_and_decisions_are_shown(proxied, tensor) -> None:
    proxy = proxied(Darker())
    before = data(proxy)
    proxy.infer(tensor)
    post(proxy, "/control/pause")
    after = data(proxy)
    assert (before["requests"], before["queries"]) == (0, 0)  # the page itself does not count
    assert (after["requests"], after["queries"]) == (1, 4) and after["paused"]
    assert after["seconds"] > before["seconds"]
    assert after["timeline"][0]["event"] == "paused" and "127.0.0.1" in str(after["timeline"][0])


def test_images_before_and_after(proxied, tensor, monkeypatch) -> None:
    monkeypatch.setattr("soda_tta.serve.recent.EVERY", 3600.0)
    proxy = proxied(Darker())
    proxy.infer(tensor)
    proxy.infer(tensor)  # too soon: not kept
    shown = data(proxy, "/control/images")
    (pair,) = shown["images"]
    assert shown["shown"] and pair["changed"]  # the first image that was changed
    before, after = (pixels_of(pair[when]) for when in ("before", "after"))
    np.testing.assert_allclose(before, 255 * (tensor[2] * 0.25 + 0.5).transpose(1, 2, 0), atol=1)
    np.testing.assert_allclose(after, before / 2, atol=1)


def pixels_of(address: str) -> Any:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))), float)


@pytest.mark.parametrize(("show", "shown"), [(None, False), (True, True), (False, False)])
def test_images_of_clients_with_a_key_are_not_kept_unless_wanted(
    proxied, tensor, show: bool | None, shown: bool
) -> None:
    proxy = proxied(Darker(), keys=Keys(CLIENT, ADMIN), show_images=show)
    body, own = message(tensor)
    assert proxy.ask("POST", PATH, body, {**own, **BEARER})[0] == 200
    found = data(proxy, "/control/images", **BEARER)
    assert found["shown"] is shown and len(found["images"]) == shown


def test_images_are_few_and_small(monkeypatch) -> None:
    monkeypatch.setattr("soda_tta.serve.recent.EVERY", 0)
    recent = Recent()
    for level in np.linspace(0, 1, 20, dtype=np.float32):
        images = np.full((2, 3, 150, 300), level)
        recent.offer(images, images, np.zeros(2, bool))
    assert len(recent.as_json()) == MOST
    assert max(pixels_of(recent.as_json()[0]["before"]).shape) <= SIDE
    assert pixels_of(recent.as_json()[0]["after"]).min() == 255  # the latest first


def test_conditions_are_shown_and_rolled_back(proxied, stream: LiveStream) -> None:
    proxy = proxied(stream)
    shown = data(proxy)
    condition = shown["live"]["sources"][0]["conditions"][0]
    assert condition["adaptor"] != "leaves the image unchanged" and shown["live"]["queries"] == {}
    answers = shown["answers"][0]
    assert answers["key"] == EVIL and answers["with"]["images"] > 8
    assert 0 < answers["without"]["confidence"] <= 1
    file = proxy.ask("GET", "/control/adaptor")[2]
    assert b"conditions" in file and proxy.ask("GET", "/control/roll-back")[0] == 405
    assert post(proxy, "/control/roll-back?key=absent")[0] == 409
    assert post(proxy, "/control/roll-back") == (200, {"sources": [EVIL]})
    assert stream.shelf(EVIL) is None
    assert data(proxy)["timeline"][0]["event"] == "roll back requested"
    status, _, content = proxy.ask("GET", "/control/adaptor")
    assert status == 404 and "no image is adapted" in error_of(content)


def test_reset_forgets(proxied) -> None:
    proxy = proxied(Darker())
    status, answer = post(proxy, "/control/reset")
    assert status == 409 and "nothing to forget" in answer["error"]
    other = Darker()
    proxy.proxy.fresh = lambda: other
    assert post(proxy, "/control/reset") == (200, {"reset": True})
    assert proxy.proxy.adapting.live is other and data(proxy)["live"]["kept"] == 0
    assert 'soda_tta_live{fact="kept"} 0.0' in proxy.ask("GET", "/metrics")[2].decode()


def test_the_metrics_count_what_the_learner_has_spent() -> None:
    metrics = Metrics()
    metrics.follow(lambda: {"arrived": 3, "queries": {"probe": 40, "judge": 8}})
    text = metrics.text().decode()
    assert 'soda_tta_learner_queries_total{purpose="probe"} 40.0' in text
    assert metrics.totals()["learner_queries_total[judge]"] == 8


def test_a_learner_without_purposes_has_one_figure() -> None:
    metrics = Metrics()
    metrics.follow(lambda: {"queries": 12})
    assert 'soda_tta_live{fact="queries"} 12.0' in metrics.text().decode()
    assert not any(name.startswith("learner_queries") for name in metrics.totals())


def test_what_the_learner_decides_is_shown_and_a_reset_starts_again(
    start, direct, tensor, tmp_path: Path
) -> None:
    proxy = start(HttpUpstream(direct.url))
    begin(proxy.proxy, Model(model=direct.url, facts={"mean": 0.5, "std": 0.25}), tmp_path)
    proxy.infer(tensor)
    live: Any = proxy.proxy.adapting.live
    wait_for(lambda: live.facts()["arrived"] == 4)
    live._report(LearningFailed(key=None, arrived=4, reason=EVIL))
    assert data(proxy)["timeline"][0]["reason"] == EVIL
    live.save()
    assert post(proxy, "/control/reset")[0] == 200
    assert data(proxy)["live"]["arrived"] == 0 and data(proxy)["kind"] == "LiveStream"
    assert not (tmp_path / STATE).exists()


def test_a_fixed_adaptor_is_downloaded_but_not_rolled_back(proxied, tmp_path: Path) -> None:
    proxy = proxied(FixedAdaptor(Bank().adaptor({"brightness": 0.1})))
    path = tmp_path / "adaptor.safetensors"
    path.write_bytes(proxy.ask("GET", "/control/adaptor")[2])
    assert "bright" in Adaptor.load(path).describe()
    assert post(proxy, "/control/roll-back")[0] == 409


def test_decisions_are_read_from_the_log_of_an_earlier_proxy(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    filler = json.dumps({"event": "promoted", "words": "x" * 1000})
    lines = [filler] * 100 + ['{"event": "tested"}', "damaged", '{"event": "rolled back"}', '{"cut']
    path.write_text("\n".join(lines))
    audit = Audit(path, Log(print), Metrics())
    assert audit.recent[-1]["event"] == "rolled back" and len(audit.recent) < 70
    assert "tested" not in {entry["event"] for entry in audit.recent}


def test_the_accuracy_of_answers_has_a_bound_if_classes_are_missing() -> None:
    one_class = [np.full(10, 0.02) + 0.8 * np.eye(10)[3] for _ in range(120)]
    found = summary(one_class)
    assert found is not None
    assert found["accuracy"].startswith("at most 34% if no class is more than twice as")
    stated = summary(one_class, np.full(10, 0.1))
    assert stated is not None
    assert stated["accuracy"].endswith("if the classes are as frequent as specified")
    few = summary(one_class[:50])
    balanced = summary(list(0.9 * np.eye(10).repeat(20, axis=0) + 0.01))
    assert few is not None and few["accuracy"] is None
    assert balanced is not None and balanced["accuracy"] is None


def test_confidence_and_information_of_answers() -> None:
    assert summary([np.eye(4)[0]] * 3) is None
    sure = summary(list(np.eye(4)) * 4)
    assert sure is not None and sure["confidence"] == 1
    assert sure["information"] == pytest.approx(np.log(4))
