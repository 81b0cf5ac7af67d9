"""Prices per image, per call and per hour, and the calls that a ledger counts."""

from pathlib import Path

import numpy as np
import pytest

from soda_tta.box import Batched, CallableBox, Ledger, Meter
from soda_tta.box.price import Price, as_price
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.storage.book import Book

FORMS = {
    "1.5": (1.5, "image", 1000),
    "1.5 per 1000 images": (1.5, "image", 1000),
    "1.5 per 1,000 queries": (1.5, "image", 1000),
    "0.002 per call": (0.002, "call", 1),
    "0.002/call": (0.002, "call", 1),
    "1e-3 per image": (0.001, "image", 1),
    "4 per 1_000 requests": (4, "call", 1000),
    "2.10 per hour": (2.1, "hour", 1),
    "20 per 24 hours": (20, "hour", 24),
    "0": (0, "image", 1000),
}


@pytest.mark.parametrize(("text", "price"), FORMS.items(), ids=FORMS)
def test_a_price_is_read(text: str, price: tuple) -> None:
    assert Price.parse(text) == Price(*price)


@pytest.mark.parametrize(
    "text",
    ["", "much", "-1", "nan", "inf", "1 per", "1 per day", "1 per 0 calls", "1.2.3", "per call"],
)
def test_what_is_not_a_price_is_refused(text: str) -> None:
    with pytest.raises(BoxError, match=r"is not a valid price.*'0\.002 per call'"):
        as_price(text)


def test_each_price_needs_its_own_measure() -> None:
    used = {"calls": 40, "seconds": 1800.0}
    assert Price.parse("1.5").cost(2000, **used) == 3
    assert Price.parse("0.5 per call").cost(2000, **used) == 20
    assert Price.parse("2 per hour").cost(2000, **used) == 1
    assert Price.parse("2 per hour").cost(2000) is None
    assert Price.parse("2 per call").cost(2000) is None
    assert "time it takes cannot be known before" in Price.parse("2 per hour").sentence(2000)


def test_json_keeps_the_number_of_old() -> None:
    assert Price.parse("1.5").number == 1.5
    assert Price.parse("2.10 per hour").number == "2.1 per hour"
    assert as_price(1.5) == Price(1.5) and as_price(None) is None


def halves(images: np.ndarray) -> np.ndarray:
    return np.full((len(images), 2), 0.5)


def blank(count: int) -> np.ndarray:
    return np.zeros((count, 3, 4, 4), np.float32)


@pytest.mark.parametrize(("workers", "calls"), [(1, 3), (4, 4)])
def test_a_ledger_counts_the_requests_that_were_sent(workers: int, calls: int) -> None:
    requests = []

    def model(images: np.ndarray) -> np.ndarray:
        requests.append(len(images))
        return halves(images)

    box = Batched(CallableBox(model, batch=5), workers=workers)
    meter = Meter(box)
    meter.asking("probe")(blank(12))
    assert meter.ledger.calls == len(requests) == box.requests(12) == calls


@pytest.mark.parametrize(("sent", "calls"), [(True, 1), (False, 0)])
def test_a_request_that_never_left_is_not_a_call(sent: bool, calls: int, tmp_path: Path) -> None:
    def model(images: np.ndarray) -> np.ndarray:
        raise BoxUnavailable("away", sent=sent)

    ledger = Ledger(book=Book(tmp_path / "book"))
    with pytest.raises(BoxUnavailable):
        Meter(CallableBox(model), ledger).asking("probe")(blank(3))
    assert ledger.calls == calls
    assert Ledger(book=Book(tmp_path / "book")).calls == calls  # the next process knows it
