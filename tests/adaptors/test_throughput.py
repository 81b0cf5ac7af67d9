"""The form of an adaptor for many images changes them as the adaptor does."""

import numpy as np
import pytest

from soda_tta.adaptors import Bank, Identity, PaperNetwork
from soda_tta.adaptors.throughput import for_many, worth_compiling


@pytest.mark.parametrize("threads", [1, 3])
def test_the_same_pixels(images, threads) -> None:
    adaptor = Bank().adaptor({"median": 0.5, "standard contrast": 0.3, "brightness": 0.1})
    fast = for_many(adaptor, threads)
    assert np.abs(fast(images) - adaptor(images)).max() < 2e-6
    assert fast.settings == adaptor.settings
    others = np.stack([adaptor.parameters, 0 * adaptor.parameters])
    assert np.array_equal(
        fast.candidates(images, others), adaptor.candidates(images, others)
    )  # only its own parameters are compiled
    assert fast(images[:0]).shape == (0, 3, 8, 8)


def test_each_condition_is_compiled(images, routed_adaptor) -> None:
    fast = for_many(routed_adaptor, 2)
    adapted, routes = fast.routed(images)
    expected, same = routed_adaptor.routed(images)
    assert np.abs(adapted - expected).max() < 2e-6
    assert np.array_equal(routes.conditions, same.conditions)


def test_what_would_not_gain_stays_as_it_is(monkeypatch) -> None:
    for adaptor in (Identity(), Bank().build(), PaperNetwork(width=4).build(seed=0)):
        assert for_many(adaptor, 2) is adaptor
    assert worth_compiling(30_000, (32, 32)) and not worth_compiling(1000, (32, 32))
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    adaptor = Bank().adaptor({"median": 0.5})
    assert for_many(adaptor, 2) is adaptor
