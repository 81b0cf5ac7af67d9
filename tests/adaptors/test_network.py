"""The paper's network: the fast form equals the plain one, and both survive disk and ONNX."""

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.adaptors import DEVIATION, Adaptor, PaperNetwork
from soda_tta.adaptors.files import write_adaptor_file
from soda_tta.errors import ImageError, MethodError, RunError
from soda_tta.settings import meanings_of

STRUCTURES = [
    PaperNetwork(),
    PaperNetwork(width=8, activation="relu"),
    PaperNetwork(width=8, blocks=2, dropout=0.5, activation="relu"),
    PaperNetwork(width=4, blocks=1, pairs=1),
    PaperNetwork(width=4, blocks=3, pairs=2),
    PaperNetwork(width=8, residual=False),
    PaperNetwork(width=4, blocks=1, deviation=0.267),
]


def some_images(count: int = 5, height: int = 12, width: int = 10) -> np.ndarray:
    return np.random.default_rng(0).random((count, 3, height, width), dtype=np.float32)


def candidates_of(adaptor: Adaptor, count: int = 3) -> np.ndarray:
    noise = np.random.default_rng(1).standard_normal((count, adaptor.parameters.size))
    return (adaptor.parameters + 0.05 * noise).astype(np.float32)


def test_the_papers_network_has_the_papers_number_of_parameters() -> None:
    assert PaperNetwork().build(seed=0).parameters.size == 3523


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_candidates_equal_the_plain_module_with_those_weights(structure: PaperNetwork) -> None:
    adaptor = structure.build(seed=1)
    images = some_images()
    thetas = candidates_of(adaptor)
    for theta, adapted in zip(thetas, adaptor.candidates(images, thetas), strict=True):
        adaptor.parameters = theta
        with torch.inference_mode():
            expected = adaptor.as_module()(torch.from_numpy(images)).numpy()
        np.testing.assert_allclose(adapted, expected, atol=2e-5)


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_one_image_alone_is_adapted_as_inside_a_batch(structure: PaperNetwork) -> None:
    adaptor = structure.build(seed=0)
    images = some_images(7)
    together = adaptor(images)
    alone = np.concatenate([adaptor(images[i : i + 1]) for i in range(len(images))])
    np.testing.assert_allclose(together, alone, atol=1e-6)


@given(
    count=st.integers(1, 5),
    height=st.integers(2, 20),
    width=st.integers(2, 20),
    which=st.integers(0, len(STRUCTURES) - 1),
)
@settings(max_examples=30, deadline=None)
def test_images_of_any_size_stay_in_range(count: int, height: int, width: int, which: int) -> None:
    images = some_images(count, height, width)
    structure = STRUCTURES[which]
    if min(height, width) < 2 * 2**structure.pairs:
        with pytest.raises(ImageError, match="too small"):
            structure.build(seed=0)(images)
        return
    adapted = structure.build(seed=0)(images)
    assert adapted.shape == images.shape and adapted.dtype == np.float32
    assert adapted.min() >= 0 and adapted.max() <= 1


@pytest.mark.parametrize("deviation", [DEVIATION, 0.267])
def test_the_perturbation_is_bounded_by_the_deviation_of_normalised_pixels(
    deviation: float,
) -> None:
    images = np.full((1, 3, 8, 8), 0.5, np.float32) + 0.1 * (some_images(1, 8, 8) - 0.5)
    adaptor = PaperNetwork(width=4, deviation=deviation).build(seed=0)
    adaptor.parameters = 100 * adaptor.parameters
    assert np.abs(adaptor(images) - images).max() == pytest.approx(deviation, abs=1e-6)


def test_start_scales_the_untrained_perturbation() -> None:
    images = 0.4 + 0.2 * some_images()  # nothing is clipped
    full, tenth, zero = (
        PaperNetwork(blocks=1, start=start).build(seed=3)(images) for start in (1.0, 0.1, 0.0)
    )
    strength = np.arctanh((full - images) / DEVIATION)
    np.testing.assert_allclose(np.arctanh((tenth - images) / DEVIATION), 0.1 * strength, atol=1e-5)
    np.testing.assert_array_equal(zero, images)
    np.testing.assert_array_equal(PaperNetwork(blocks=1).build(seed=3)(images), full)  # the default


def test_dropout_is_shared_by_all_candidates_and_off_without_noise() -> None:
    adaptor = PaperNetwork(width=8, blocks=1, dropout=0.5).build(seed=0)
    images = some_images()
    same = np.repeat(adaptor.parameters[None], 2, axis=0)
    first, second = adaptor.candidates(images, same, noise=5)
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - adaptor.candidates(images, same, noise=6)[0]).max() > 0
    assert np.abs(first - adaptor(images)).max() > 0
    np.testing.assert_array_equal(adaptor(images), adaptor(images))


def test_the_same_seed_builds_the_same_network_and_torchs_generator_is_left_alone() -> None:
    state = torch.random.get_rng_state()
    first, second = (PaperNetwork().build(seed=4).parameters for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - PaperNetwork().build(seed=5).parameters).max() > 0
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_an_adaptor_is_the_same_from_disk_and_from_onnx(structure: PaperNetwork, tmp_path) -> None:
    adaptor = structure.build(seed=2)
    images = some_images(4, 24, 20)
    adaptor.save(tmp_path / "a.safetensors")
    loaded = Adaptor.load(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(loaded(images), adaptor(images))
    assert adaptor.to_onnx(tmp_path / "a.onnx") <= 1e-5
    session = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    (adapted,) = session.run(None, {"images": images})
    np.testing.assert_allclose(adapted, adaptor(images), atol=1e-5)


def test_a_file_older_than_start_and_deviation_is_read(tmp_path) -> None:
    adaptor = PaperNetwork(width=4, blocks=1).build(seed=2)
    images = some_images()
    older = {
        name: value
        for name, value in adaptor.settings.items()
        if name not in ("start", "deviation")
    }
    write_adaptor_file(tmp_path / "a.safetensors", "network", older, adaptor.parameters)
    np.testing.assert_array_equal(Adaptor.load(tmp_path / "a.safetensors")(images), adaptor(images))


def test_a_file_that_is_not_an_adaptor_is_refused(tmp_path) -> None:
    from safetensors.numpy import save_file

    (tmp_path / "text.safetensors").write_text("hello")
    save_file({"weights": np.zeros(3, np.float32)}, tmp_path / "other.safetensors")
    short = PaperNetwork(width=2).build(seed=0)
    short.parameters = short.parameters[:-1]
    short.save(tmp_path / "short.safetensors")
    for name in ("text", "other", "short", "absent"):
        with pytest.raises(RunError, match=name):
            Adaptor.load(tmp_path / f"{name}.safetensors")


@pytest.mark.parametrize(
    "wrong",
    [
        {"activation": "gelu"},
        {"width": 0},
        {"blocks": -1},
        {"dropout": 1.0},
        {"start": -1.0},
        {"deviation": 0.0},
    ],
)
def test_impossible_structures_are_refused(wrong) -> None:
    with pytest.raises(MethodError):
        PaperNetwork(**wrong)


def test_every_setting_has_a_help_text() -> None:
    assert all(meanings_of(PaperNetwork()).values())


def test_settings_and_parameters_rebuild_the_adaptor() -> None:
    adaptor = PaperNetwork(width=4, blocks=1).build(seed=2)
    rebuilt = type(adaptor).from_settings(adaptor.settings, adaptor.parameters)
    assert rebuilt.settings == adaptor.settings
    np.testing.assert_array_equal(rebuilt(some_images()), adaptor(some_images()))
