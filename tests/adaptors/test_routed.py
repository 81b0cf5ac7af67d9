"""An adaptor for several conditions: each image is changed by the adaptor of its own condition."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from soda_tta import find_conditions
from soda_tta.adaptors import Adaptor, Bank, Identity, PaperNetwork, RoutedAdaptor
from soda_tta.adaptors.parts import PARTS
from soda_tta.adaptors.routed_module import UNFAMILIAR, RouterModule
from soda_tta.conditions.mixture import Mixture
from soda_tta.conditions.router import Router
from soda_tta.errors import ImageError, MethodError
from soda_tta.protocols.onnx_files import open_session
from soda_tta.testing import check_adaptor

RANDOM = np.random.default_rng(0)


def scenes(count: int, *size: int) -> np.ndarray:
    """Coloured squares of four pixels."""
    height, width = size or (16, 16)
    squares = RANDOM.random((count, 3, height // 4, width // 4), np.float32)
    return squares.repeat(4, axis=2).repeat(4, axis=3)


def noisy(images: np.ndarray) -> np.ndarray:
    noise = 0.2 * RANDOM.standard_normal(images.shape, np.float32)
    return np.clip(images + noise, 0, 1)


def hazy(images: np.ndarray) -> np.ndarray:
    return 0.6 + 0.1 * images


IMAGES = np.concatenate([scenes(90), noisy(scenes(40)), hazy(scenes(40))])
FOUND = find_conditions(IMAGES, conditions=3)
PLAIN, NOISY, HAZY = (FOUND.of_each[place] for place in (0, 100, 150))
STRANGE = (RANDOM.random((2, 3, 16, 16)) > 0.5).astype(np.float32)  # like none of them
ADAPTORS = {
    PLAIN: Identity(),
    NOISY: PaperNetwork(width=2).build(seed=0),
    HAZY: Bank().adaptor({"standard contrast": 0.8, "brightness": -0.1}),
}
SHARES = [90 / 170, 40 / 170, 40 / 170]


def routed(**changed) -> RoutedAdaptor:
    """The adaptor of these tests."""
    settings = {
        "router": FOUND.router,
        "adaptors": [ADAPTORS[place] for place in range(3)],
        "words": FOUND.words,
        "shares": SHARES,
    }
    return RoutedAdaptor(**{**settings, **changed})


MIXED = np.concatenate([IMAGES[[0, 100, 150, 1, 101, 151]], STRANGE])


def test_each_image_is_changed_by_the_adaptor_of_its_condition() -> None:
    adapted, routes = routed().routed(MIXED)
    np.testing.assert_array_equal(routes.conditions[:6], [PLAIN, NOISY, HAZY] * 2)
    np.testing.assert_array_equal(routes.familiar, [True] * 6 + [False] * 2)
    for place, image in enumerate(MIXED[:6]):
        expected = ADAPTORS[routes.conditions[place]](image[None])[0]
        np.testing.assert_allclose(adapted[place], expected, atol=1e-6)
    np.testing.assert_array_equal(adapted[6:], STRANGE)  # left as they are
    np.testing.assert_array_equal(routed()(MIXED), adapted)
    np.testing.assert_array_equal(routed().routes(MIXED).distances, routes.distances)


def test_unfamiliar_is_what_lies_beyond_the_radius() -> None:
    everything = routed(router=replace(FOUND.router, radius=np.inf))
    assert everything.routes(MIXED).familiar.all()
    nothing = routed(router=replace(FOUND.router, radius=0.0))
    np.testing.assert_array_equal(nothing(MIXED), MIXED)


def test_an_image_is_adapted_in_the_same_way_alone_and_in_a_batch() -> None:
    adaptor = routed()
    together, routes = adaptor.routed(IMAGES)
    for place in range(0, len(IMAGES), 7):
        alone, route = adaptor.routed(IMAGES[place : place + 1])
        assert route.conditions[0] == routes.conditions[place]
        assert route.familiar[0] == routes.familiar[place]
        np.testing.assert_allclose(alone[0], together[place], atol=1e-6)


def twice(router: Router) -> Router:
    """The same conditions a second time, so that each is as likely as another."""
    mixture = router.mixture
    doubled = [
        np.concatenate([array, array])
        for array in (mixture.weights / 2, mixture.means, mixture.covariances)
    ]
    owners = np.concatenate([router.owners, router.owners + len(router)])
    return replace(router, mixture=Mixture(*doubled), owners=owners)


def test_of_two_equally_likely_conditions_the_first_is_chosen() -> None:
    router = twice(FOUND.router)
    np.testing.assert_array_equal(router(IMAGES).conditions, FOUND.of_each)
    np.testing.assert_array_equal(router(IMAGES[:1]).conditions, FOUND.of_each[:1])


def test_the_parameters_are_those_of_all_adaptors_in_their_order() -> None:
    adaptor = routed(adaptors=[Bank().build(), Identity(), Bank().build()])
    theta = RANDOM.random(2 * len(PARTS)).astype(np.float32)
    adaptor.parameters = theta
    np.testing.assert_array_equal(adaptor.parameters, theta)
    np.testing.assert_array_equal(adaptor.adaptors[2].parameters, theta[len(PARTS) :])
    assert adaptor.units.shape == (2 * len(PARTS),)
    with pytest.raises(MethodError, match=f"{2 * len(PARTS)} parameters, but 3 were given"):
        adaptor.candidates(MIXED, np.zeros((1, 3)))


def test_conditions_may_share_an_adaptor() -> None:
    shared = Bank().adaptor({"brightness": 0.1})
    adaptor = routed(adaptors=[shared, Identity(), shared])
    module = adaptor.as_module()
    assert len(module.adaptors) == 1  # computed once
    by_module = module(torch.from_numpy(MIXED)).detach().numpy()
    np.testing.assert_allclose(by_module, adaptor(MIXED), atol=1e-6)
    adaptor.parameters = np.arange(
        2 * len(PARTS), dtype=np.float32
    )  # but each has parameters of its own
    np.testing.assert_array_equal(adaptor.parameters, np.arange(2 * len(PARTS)))
    assert shared.describe() == "brighter by 0.10"


def test_candidates_follow_their_own_parameters() -> None:
    adaptor = routed()
    other = np.zeros_like(adaptor.parameters)
    first, second = adaptor.candidates(MIXED, np.stack([adaptor.parameters, other]))
    np.testing.assert_allclose(first, adaptor(MIXED), atol=1e-6)
    np.testing.assert_array_equal(second[[0, 3]], MIXED[[0, 3]])
    assert (np.abs(second - first).max(axis=(1, 2, 3))[[1, 2, 4, 5]] > 1e-3).all()


def test_gradients_reach_the_parameters_of_the_conditions_that_are_present() -> None:
    adaptor = routed()
    theta = torch.tensor(adaptor.parameters, requires_grad=True)
    adapted = adaptor.differentiable(torch.from_numpy(MIXED), theta)
    np.testing.assert_allclose(adapted.detach().numpy(), adaptor(MIXED), atol=1e-5)
    only_hazy = adaptor.differentiable(torch.from_numpy(MIXED[[2, 5]]), theta)
    only_hazy.square().sum().backward()
    slopes = dict(zip(range(3), adaptor.split(theta.grad), strict=True))
    assert slopes[HAZY].abs().max() > 0 and not slopes[NOISY].any()


def test_it_says_what_is_done_to_each_condition() -> None:
    conditions = routed().describe().split("; ")
    assert conditions[PLAIN].endswith(", 53 % of the images: left unchanged")
    assert conditions[NOISY].startswith("noisy") and "a network of" in conditions[NOISY]
    assert "24 % of the images: standard contrast 80%" in conditions[HAZY]
    assert repr(routed()).startswith(f"<RoutedAdaptor, 3 conditions, {113 + len(PARTS)} parameters")


def test_what_does_not_belong_together_is_refused() -> None:
    with pytest.raises(MethodError, match="3 conditions needs as many adaptors"):
        routed(adaptors=[Identity()])
    with pytest.raises(MethodError, match=r"lie in \[0, 1\]"):
        routed(shares=[0.5, 0.5, float("nan")])
    with pytest.raises(ImageError, match="pixels in"):
        routed().routes(MIXED * 255)


def test_a_saved_adaptor_does_the_same(tmp_path) -> None:
    path = tmp_path / "adaptor.safetensors"
    routed().save(path)
    loaded = Adaptor.load(path)
    assert isinstance(loaded, RoutedAdaptor)
    assert loaded.settings == routed().settings and loaded.describe() == routed().describe()
    np.testing.assert_array_equal(loaded(MIXED), routed()(MIXED))


def test_it_keeps_the_contract_of_adaptors() -> None:
    check_adaptor(routed(), MIXED)


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Any:
    """The adaptor in ONNX Runtime."""
    path = tmp_path_factory.mktemp("onnx") / "adaptor.onnx"
    assert routed().to_onnx(path, opset=12) <= 1e-5
    session = open_session(path, threads=1)
    return lambda images: session.run(None, {"images": images})[0]


@pytest.mark.parametrize("images", [MIXED, *MIXED[:, None]], ids=lambda images: len(images))
def test_onnx_runtime_routes_and_adapts_in_the_same_way(exported, images) -> None:
    np.testing.assert_allclose(exported(images), routed()(images), atol=1e-5)


@pytest.mark.parametrize("size", [(32, 32), (160, 128), (96, 100)])
def test_the_exported_file_takes_images_of_any_size(exported, size) -> None:
    pictures = scenes(2, *size)
    strange = (RANDOM.random(pictures.shape) > 0.5).astype(np.float32)
    images = np.concatenate([pictures, noisy(pictures), hazy(pictures), strange])
    adapted, routes = routed().routed(images)
    assert routes.familiar[2:6].any() and not routes.familiar[6:].any()
    np.testing.assert_allclose(exported(images), adapted, atol=1e-5)


def test_the_module_takes_the_first_of_two_equally_likely_conditions() -> None:
    images = torch.from_numpy(IMAGES[::9])
    expected = FOUND.router(IMAGES[::9])
    conditions = RouterModule(twice(FOUND.router))(images).numpy()
    chosen = np.where(expected.familiar, expected.conditions, UNFAMILIAR)
    np.testing.assert_array_equal(conditions, chosen)


def test_no_images_have_no_routes() -> None:
    adapted, routes = routed().routed(MIXED[:0])
    assert adapted.shape == (0, 3, 16, 16) and len(routes.conditions) == 0
