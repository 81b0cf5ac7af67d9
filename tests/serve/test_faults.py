"""Faults of the model, the adaptor, the learner and the disk: never a wrong answer."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soda_tta.errors import SodaError, StorageError
from soda_tta.serve import learner as learner_module
from soda_tta.serve.limits import Limits, read_limits
from soda_tta.serve.proxy import Proxy
from soda_tta.serve.state import AUDIT, Audit, state_folder
from soda_tta.serve.upstream import HttpUpstream

from .conftest import PATH, PATIENCE, Darker, Served, error_of, listening, message, wait_for


@pytest.mark.parametrize(
    ("status", "headers", "content"),
    [
        (500, {"Content-Type": "text/plain"}, b"out of memory"),
        (503, {"Retry-After": "7"}, b'{"error": "loading"}'),
        (429, {"Retry-After": "3"}, b'{"error": "slow down"}'),
        (400, {}, b'{"error": "wrong shape"}'),
        (200, {"Content-Type": "application/json"}, b"{ this is not JSON"),
        (200, {}, b'{"outputs": [{"name": "probabilities", "data": [NaN]}]}'),
        (302, {"Location": "http://169.254.169.254/"}, b""),
    ],
)
def test_the_client_gets_the_models_own_status_and_body(
    behind, scripted, tensor, status: int, headers: dict[str, str], content: bytes
) -> None:
    proxy = behind(Darker())
    scripted.replies.append((status, headers, content))
    got, received, body = proxy.ask("POST", PATH, *message(tensor))
    assert (got, body) == (status, content)
    assert received.get("retry-after") == headers.get("Retry-After")
    assert "location" not in received and len(scripted.requests) == 1
    assert (proxy.count(f"errors_total[upstream {status}]") == 1) == (status >= 400)


def test_malformed_answers_do_not_reach_the_learner(behind, scripted, tensor) -> None:
    live = Darker()
    proxy = behind(live)
    rows = {"name": "probabilities", "datatype": "FP32", "shape": [4, 2]}
    for data in ([None] * 8, [5.0] * 8, [0.5]):
        answer = {"model_name": "tiny", "outputs": [{**rows, "data": data}]}
        scripted.replies.append((200, {}, json.dumps(answer).encode()))
    good = {"model_name": "tiny", "outputs": [{**rows, "data": [0.5] * 8}]}
    scripted.replies.append((200, {}, json.dumps(good).encode()))
    for _ in range(4):
        assert proxy.ask("POST", PATH, *message(tensor))[0] == 200
    assert live.got.wait(PATIENCE)
    assert len(live.arrivals) == 1 and proxy.count("errors_total[malformed answer]") == 3
    assert proxy.proxy.adapting.failing is False


def test_a_model_that_is_dead_and_back(start, scripted, direct, model_box, tensor) -> None:
    upstream = HttpUpstream("http://127.0.0.1:1/v2/models/tiny")
    proxy = start(upstream, Darker(), box=model_box)
    status, _, content = proxy.ask("POST", PATH, *message(tensor))
    assert (status, error_of(content)) == (502, "the model did not respond.")
    assert "127.0.0.1" not in content.decode()
    assert proxy.count("errors_total[upstream unreachable]") == 1
    upstream.place = HttpUpstream(direct.url).place
    assert proxy.infer(tensor).shape == (4, 4)


def test_a_model_that_is_too_slow(behind, scripted, tensor) -> None:
    gate = threading.Event()
    proxy = behind(timeout=0.1)
    scripted.replies.append(lambda handler: gate.wait(PATIENCE))
    assert proxy.ask("POST", PATH, *message(tensor))[0] == 504
    gate.set()
    wait_for(lambda: proxy.ask("POST", PATH, *message(tensor))[0] == 200)


def test_a_response_that_is_too_long(behind, scripted, tensor) -> None:
    proxy = behind()
    scripted.replies.append((200, {}, b"x" * 10_001))
    assert proxy.ask("POST", PATH, *message(tensor))[0] == 502
    assert proxy.ask("POST", PATH, *message(tensor))[0] == 200


def test_an_idle_connection_that_the_model_closed_costs_no_answer(behind, scripted, tensor) -> None:
    def hang_up(handler: Any) -> None:
        handler.connection.shutdown(2)
        handler.close_connection = True

    proxy = behind()
    assert proxy.ask("POST", PATH, *message(tensor))[0] == 200
    scripted.replies.append(hang_up)  # on the connection that is in use by now
    assert proxy.ask("POST", PATH, *message(tensor))[0] == 200
    scripted.replies += [hang_up, hang_up]
    assert proxy.ask("POST", PATH, *message(tensor))[0] == 502


def test_a_failing_adaptor_is_a_pass_through(proxied, direct, tensor) -> None:
    live = Darker()
    live.fails = True
    proxy = proxied(live)
    np.testing.assert_array_equal(proxy.infer(tensor), direct.infer(tensor))
    assert proxy.count("errors_total[adaptor]") == 1
    live.adapted = lambda images, key: (images * np.nan, None)  # type: ignore[method-assign]
    np.testing.assert_array_equal(proxy.infer(tensor), direct.infer(tensor))
    live.adapted = lambda images, key: (images[:1], None)  # type: ignore[method-assign]
    np.testing.assert_array_equal(proxy.infer(tensor), direct.infer(tensor))
    assert proxy.count("errors_total[adaptor]") == 3
    assert "a bug of the adaptor" in "".join(proxy.lines)


def test_a_failing_learner_makes_a_pass_through_until_it_works(
    proxied, direct, tensor, monkeypatch
) -> None:
    monkeypatch.setattr(learner_module, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(learner_module, "IDLE_SECONDS", 0.01)
    live = Darker()
    broken = True

    def learn() -> bool:
        if broken:
            raise RuntimeError("a bug of the learner")
        return False

    live.learn = learn  # type: ignore[method-assign]
    proxy = proxied(live)
    wait_for(lambda: proxy.proxy.adapting.failing)
    np.testing.assert_array_equal(proxy.infer(tensor), direct.infer(tensor))
    assert b"soda_tta_learner_ok 0.0" in proxy.ask("GET", "/metrics")[2]
    broken = False
    wait_for(lambda: not proxy.proxy.adapting.failing)
    assert np.abs(proxy.infer(tensor) - direct.infer(tensor)).max() > 0.01
    wait_for(lambda: live.arrivals)  # it learns from what came meanwhile


def test_a_full_disk_does_not_stop_the_traffic(proxied, tensor, tmp_path) -> None:
    live = Darker()
    live.save = lambda: (_ for _ in ()).throw(OSError(28, "No space left"))  # type: ignore
    proxy = proxied(live)
    proxy.proxy.audit = Audit(tmp_path / "missing" / AUDIT, proxy.proxy.log, proxy.proxy.metrics)
    (tmp_path / "missing").rmdir()
    assert proxy.ask("POST", "/control/pause")[0] == 200
    assert proxy.infer(tensor).shape == (4, 4)
    proxy.proxy.learner.close()
    assert proxy.count("errors_total[storage]") == 2


def test_a_full_queue_is_503_and_every_other_answer_arrives(behind, scripted, tensor) -> None:
    gate = threading.Event()
    proxy = behind(limits=Limits(concurrency=1, queue=2))
    scripted.replies.append(lambda handler: gate.wait(PATIENCE) and handler.send_error(418))
    with ThreadPoolExecutor(4) as pool:
        body, headers = message(tensor)
        pending = [pool.submit(proxy.ask, "POST", PATH, body, headers) for _ in range(3)]
        wait_for(lambda: len(proxy.proxy.places.waiting) == 2)
        status, received, content = proxy.ask("POST", PATH, body, headers)
        assert (status, received["retry-after"]) == (503, "1")
        assert "too many requests" in error_of(content)
        gate.set()
        assert sorted(each.result()[0] for each in pending) == [200, 200, 418]
    assert proxy.proxy.places.taken == 0 and proxy.proxy.places.bytes == 0


def test_a_client_that_leaves_gives_its_place_back(behind, scripted, tensor) -> None:
    gate = threading.Event()
    proxy = behind(limits=Limits(concurrency=1, queue=1))
    scripted.replies.append(lambda handler: gate.wait(PATIENCE))
    body, headers = message(tensor)
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
    places = proxy.proxy.places
    computed, waiting = (socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(2))
    computed.sendall(head.encode() + body)
    wait_for(lambda: scripted.requests)
    waiting.sendall(head.encode() + body)
    wait_for(lambda: places.waiting)
    waiting.close()
    wait_for(lambda: not places.waiting)
    computed.close()
    wait_for(lambda: not places.taken)
    gate.set()
    assert proxy.ask("POST", PATH, body, headers)[0] == 200
    assert proxy.proxy.places.bytes == 0


def test_open_requests_are_answered_before_the_end(start, scripted, model_box, tensor) -> None:
    gate = threading.Event()
    scripted.replies.append(lambda handler: gate.wait(PATIENCE) and handler.send_error(418))
    proxy = Proxy(HttpUpstream(scripted.url))
    with listening(proxy) as running, ThreadPoolExecutor(2) as pool:
        served = Served(proxy, running, [])
        pending = pool.submit(served.ask, "POST", PATH, *message(tensor))
        wait_for(lambda: scripted.requests)
        loop = running.runner.server._loop
        end = asyncio.run_coroutine_threadsafe(running.drain(), loop)
        wait_for(lambda: proxy.draining)
        wait_for(lambda: is_refused(served))
        gate.set()
        assert pending.result()[0] == 418
        end.result(PATIENCE)


def is_refused(served: Served) -> bool:
    try:
        served.ask("GET", "/v2/health/live")
    except OSError:
        return True
    return False


def test_limits_are_read_again_and_a_wrong_file_changes_nothing(
    behind, tensor, tmp_path: Path
) -> None:
    config = tmp_path / "serve.toml"
    config.write_text("[limits]\nbody_bytes = 1000000\n")
    proxy = behind(config=str(config))
    assert proxy.ask("POST", PATH, *message(tensor))[0] == 200
    config.write_text("[limits]\nbody_bytes = 100\n")
    proxy.proxy.reload()
    assert proxy.ask("POST", PATH, *message(tensor))[0] == 413
    config.write_text("[limits]\nbody_bytes = -1\n")
    proxy.proxy.reload()
    assert proxy.proxy.limits.body_bytes == 100
    assert "body_bytes is -1; it must be a whole number above 0" in "".join(proxy.lines)


def test_the_limit_of_responses_changes_with_the_others(
    behind, scripted, tensor, tmp_path: Path
) -> None:
    config = tmp_path / "serve.toml"
    config.write_text("[limits]\n")
    proxy = behind(config=str(config))
    scripted.replies += [(200, {}, b"x" * 3000)] * 3
    assert proxy.ask("POST", PATH, *message(tensor))[0] == 200
    config.write_text("[limits]\nresponse_bytes = 2000\n")
    proxy.proxy.reload()
    assert proxy.ask("POST", PATH, *message(tensor))[0] == 502  # on the connection from before
    config.write_text("[limits]\nresponse_bytes = 4000\n")
    proxy.proxy.reload()
    assert proxy.ask("POST", PATH, *message(tensor))[0] == 200


def test_images_that_there_is_no_time_to_learn_from_are_counted(
    proxied, tensor, monkeypatch
) -> None:
    monkeypatch.setattr(learner_module, "MOST_IMAGES", 4)
    gate = threading.Event()
    live = Darker()
    live.learn = lambda: gate.wait(PATIENCE) and False  # type: ignore[method-assign]
    live.facts = lambda: {"learning": True, "missed": 100}  # type: ignore[method-assign]
    proxy = proxied(live)
    for _ in range(4):
        proxy.infer(tensor)
    dropped = proxy.proxy.learner.missed
    gate.set()
    assert dropped in (8, 12)  # the learner may have taken the first four before it waited
    assert proxy.count("images_not_learned_from_total") == 100 + dropped
    status = json.loads(proxy.ask("GET", "/control/status")[2])
    assert status["live"]["missed"] == 100 + dropped
    page = proxy.ask("GET", "/metrics")[2].decode()
    assert f"soda_tta_images_not_learned_from_total {100.0 + dropped}" in page


def test_a_limit_that_does_not_exist_is_named(tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text("[limits]\nqueu = 3\n")
    with pytest.raises(SodaError, match="did you mean 'queue'"):
        read_limits(config)


def test_a_second_proxy_on_the_same_state_is_refused(tmp_path: Path) -> None:
    with (
        state_folder(tmp_path / "state"),
        pytest.raises(StorageError, match=r"another proxy uses .*state"),
        state_folder(tmp_path / "state"),
    ):
        pass


def test_what_is_decided_goes_to_the_audit_log(proxied, tensor, direct, tmp_path: Path) -> None:
    proxy = proxied(Darker())
    proxy.proxy.audit = Audit(tmp_path / AUDIT, proxy.proxy.log, proxy.proxy.metrics)
    assert proxy.ask("GET", "/control/pause")[0] == 405
    assert proxy.ask("POST", "/control/pause")[0] == 200
    np.testing.assert_array_equal(proxy.infer(tensor), direct.infer(tensor))
    assert json.loads(proxy.ask("GET", "/control/status")[2])["paused"] is True
    assert proxy.ask("POST", "/control/resume")[0] == 200
    entries = [json.loads(line) for line in (tmp_path / AUDIT).read_text().splitlines()]
    assert [(each["event"], each["by"]) for each in entries] == [
        ("paused", "127.0.0.1"),
        ("resumed", "127.0.0.1"),
    ]
