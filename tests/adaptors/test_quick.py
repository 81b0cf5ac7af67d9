"""The form of an adaptor for requests: the same conditions, and the same pixels to 1e-5."""

import numpy as np
import pytest

from soda_tta.adaptors import Bank, Identity, RoutedAdaptor
from soda_tta.adaptors import quick as module
from soda_tta.adaptors.quick import for_requests, quick_routed, quick_statistics
from soda_tta.conditions import find_conditions
from soda_tta.conditions.statistics import statistics
from soda_tta.errors import ImageError


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 32, 32), (3, 17, 33), (1, 64, 64), (2, 224, 224)])
def test_statistics_are_the_same_bits(shape) -> None:
    count, *size = shape
    random = np.random.default_rng(0)
    images = random.random((count, 3, *size), dtype=np.float32)
    images[:, :, : size[0] // 2] = np.rint(4 * images[:, :, : size[0] // 2]) / 4  # many ties
    assert np.array_equal(quick_statistics(images), statistics(images))
    assert quick_statistics(images[:0]).shape == statistics(images[:0]).shape


def test_images_that_are_too_small_are_refused_in_the_same_words() -> None:
    with pytest.raises(ImageError, match="at least 8 pixels"):
        quick_statistics(np.zeros((1, 3, 7, 32), np.float32))


@pytest.fixture(scope="module")
def noisy() -> np.ndarray:
    random = np.random.default_rng(1)
    plain = random.random((60, 3, 8, 8)).repeat(4, axis=2).repeat(4, axis=3)
    plain[30:] += 0.2 * random.standard_normal((30, 3, 32, 32))
    return plain.clip(0, 1).astype(np.float32)


@pytest.fixture(scope="module")
def routed(noisy) -> RoutedAdaptor:
    found = find_conditions(noisy, conditions=2)
    adaptors = [Bank().build(), Bank().adaptor({"cosine shrinkage 0.3": 0.8, "gamma": 0.1})]
    return RoutedAdaptor(
        router=found.router, adaptors=adaptors, words=found.words, shares=[0.5, 0.5]
    )


def test_the_same_answers_alone_and_together(routed, noisy) -> None:
    fast = quick_routed(routed)
    others = np.random.default_rng(2).random((4, 3, 32, 32), dtype=np.float32)  # unfamiliar
    images = np.concatenate([noisy, others])
    expected, routes = routed.routed(images)
    assert set(routes.conditions) == {0, 1} and not routes.familiar.all()
    together, same = fast.routed(images)
    alone = [fast.routed(image[None]) for image in images]
    for adapted in (together, np.concatenate([each for each, _ in alone])):
        np.testing.assert_allclose(adapted, expected, atol=1e-5)
    for name in ("conditions", "distances", "familiar"):
        assert np.array_equal(getattr(same, name), getattr(routes, name))
        pieces = [getattr(each, name) for _, each in alone]
        np.testing.assert_allclose(np.concatenate(pieces), getattr(routes, name), rtol=1e-12)
    assert np.array_equal(together[routes.conditions == 0], images[routes.conditions == 0])


def test_only_its_own_parameters_are_compiled(noisy) -> None:
    adaptor = Bank().adaptor({"median": 0.5})
    fast = for_requests(adaptor)
    assert fast.settings == adaptor.settings and fast is not adaptor
    others = np.stack([adaptor.parameters, 0 * adaptor.parameters])
    assert np.array_equal(fast.candidates(noisy, others), adaptor.candidates(noisy, others))


def test_what_changes_nothing_costs_nothing() -> None:
    assert isinstance(for_requests(Bank().build()), Identity)


def test_without_onnx_runtime_it_is_the_same(routed, noisy, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    caches = (module._compiled, module.statistics_session)
    for cache in caches:
        cache.cache_clear()
    try:
        assert np.array_equal(quick_routed(routed)(noisy), routed(noisy))
    finally:
        for cache in caches:
            cache.cache_clear()
