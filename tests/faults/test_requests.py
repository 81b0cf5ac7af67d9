"""One request that goes wrong: never a wrong row, never a wait without an end, always a bill."""

import socket
import threading
import time

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.box import Ledger, Meter, OpenInferenceBox
from soda_tta.errors import BoxError, BoxUnavailable, BudgetError

FAULTS = {
    "too_many_requests": 0,  # declined: nothing was computed
    "unavailable": 120,
    "silent": 120,
    "cut": 120,
    "answer_of_another": 120,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_image_that_may_have_been_computed_is_on_the_bill(
    server, images, expected, waits, fault: str
) -> None:
    server.faults = [fault]
    ledger = Ledger(limit=240)
    box = load_box(server.url, workers=1, batch=120)
    rows = Meter(box, ledger).asking("probe")(images)
    np.testing.assert_allclose(rows, expected, atol=1e-6)
    assert ledger.by_purpose().get("retried", 0) == FAULTS[fault]
    assert ledger.queries == {"probe": 120}
    assert server.computed <= ledger.total


def test_a_retry_beyond_the_limit_is_not_sent(server, images, waits) -> None:
    server.faults = ["cut"]
    ledger = Ledger(limit=200)
    with pytest.raises(BudgetError, match=r"120 more .* 120 are spent .120 of them without a resp"):
        Meter(load_box(server.url, workers=1, batch=120), ledger).asking("probe")(images)
    assert server.computed == ledger.total == 120


def test_a_refused_connection_costs_nothing(server, images, waits) -> None:
    box = load_box(server.url, workers=1)
    server.http.shutdown()
    server.http.server_close()
    box.box.box.client.close()
    ledger = Ledger(limit=200)
    with pytest.raises(BoxUnavailable, match="Gave up after 5 attempts"):
        Meter(box, ledger).asking("probe")(images)
    assert ledger.by_purpose() == {}


@pytest.mark.parametrize("retries", [0, 2])
def test_retries_can_be_limited_and_turned_off(server, images, waits, retries: int) -> None:
    server.faults = ["unavailable"] * 9
    box = load_box(server.url, workers=1, batch=120, retries=retries)
    with pytest.raises(BoxUnavailable, match="Gave up after"):
        box(images)
    assert len(server.requests) == 1 + retries
    with pytest.raises(BoxError, match="retries is -1"):
        load_box(server.url, retries=-1)


def test_a_duplicated_response_is_not_taken_for_the_next(server, images, expected, waits) -> None:
    server.faults = [None, "twice", None, "twice", "twice"]
    box = load_box(server.url, workers=1, batch=10)
    np.testing.assert_allclose(box(images), expected, atol=1e-6)


def test_a_server_without_ids_works_until_it_has_returned_one(server, images, expected) -> None:
    server.echoes_id = False
    box = OpenInferenceBox(server.url, batch=10)
    np.testing.assert_allclose(box(images), expected, atol=1e-6)
    server.echoes_id = True
    box(images)
    server.echoes_id = False
    with pytest.raises(BoxUnavailable, match="the id of another request"):
        box(images)


@pytest.mark.parametrize("fault", ["trickle", "trickling_headers"])
def test_the_deadline_is_for_the_whole_request(server, images, fault: str) -> None:
    server.faults = [fault]
    box = OpenInferenceBox(server.url, timeout=0.2)
    began = time.monotonic()
    with pytest.raises(BoxUnavailable, match=r"did not respond within 0\.2 s") as caught:
        box(images[:2])
    assert time.monotonic() - began < 2
    assert caught.value.sent


def test_a_server_that_reads_slowly_is_bound_by_the_deadline(server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        box = OpenInferenceBox(server.url, timeout=0.2)
        box.url = f"http://127.0.0.1:{deaf.getsockname()[1]}/v2/models/tiny"
        began = time.monotonic()
        with pytest.raises(BoxUnavailable, match="did not respond"):
            box.answer(np.zeros((20_000, 3, 8, 8), np.float32))  # more than a socket holds
        assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("fault", "message"),
    [("endless", "more than 1.02 MB, the most that the declared"), ("bomb", "encoding 'gzip'")],
)
def test_a_response_cannot_fill_the_memory(server, images, fault: str, message: str) -> None:
    server.faults = [fault]
    with pytest.raises(BoxError, match=message):
        load_box(server.url, workers=1)(images)
    assert server.headers[-1]["accept-encoding"] == "identity"


def test_a_wait_is_shown_with_its_reason(server, images, waits) -> None:
    server.faults = ["too_many_requests"]
    shown = []
    meter = Meter(load_box(server.url, workers=1), waiting=lambda *wait: shown.append(wait))
    meter.asking("probe")(images)
    ((seconds, reason),) = shown
    assert seconds == waits[0] == 2
    assert "429: slow down" in reason


@pytest.mark.parametrize("count", [3, 27, 48, 120])
def test_every_query_is_split_over_all_workers(server, images, expected, count: int) -> None:
    together = threading.Barrier(min(4, count))
    box = load_box(server.url, workers=4)
    inner = box.box.box
    send = inner.answer

    def meet(request):
        together.wait(5)  # breaks unless all workers are here at once
        return send(request)

    inner.answer = meet
    np.testing.assert_allclose(box(images[:count]), expected[:count], atol=1e-6)
    assert len(server.requests) == min(4, count)


def test_the_next_piece_is_prepared_while_requests_are_under_way(server, images, expected) -> None:
    deployed = load_box(server.url, workers=4)
    inner = deployed.box.box
    send = inner.answer
    made = [threading.Event() for _ in range(4)]

    def answer(request):
        first = int(np.flatnonzero((images == request[0]).all(axis=(1, 2, 3)))[0])
        assert made[min(3, first // 30 + 1)].wait(5)  # until the next piece has been made
        return send(request)

    def pieces():
        for number in range(4):
            made[number].set()
            yield images[30 * number : 30 * number + 30]

    inner.answer = answer
    rows = np.concatenate(list(Meter(deployed).asking("probe").each(pieces())))
    np.testing.assert_allclose(rows, expected, atol=1e-6)
