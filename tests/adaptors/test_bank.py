import re

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.adaptors import Adaptor, Bank, BankAdaptor
from soda_tta.adaptors.files import write_adaptor_file
from soda_tta.adaptors.parts import MIXED, PARTS, in_words, moves, scale, units
from soda_tta.errors import ImageError, MethodError, RunError

NAMES = [part.name for part in PARTS]


def some_images(count: int = 3, height: int = 12, width: int = 10, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 3, height, width), dtype=np.float32)


def some_parameters(seed: int = 0, size: float = 1.0) -> np.ndarray:
    return (size * units() * np.random.default_rng([seed, 1]).standard_normal(len(PARTS))).astype(
        np.float32
    )


def with_parameters(*seeds: int, grain: float = 1.0) -> BankAdaptor:
    return BankAdaptor(Bank(grain=grain), some_parameters(*seeds))


CONTENTS = {
    "noise": lambda shape, seed: np.random.default_rng(seed).random(shape, dtype=np.float32),
    "black": lambda shape, seed: np.zeros(shape, np.float32),
    "white": lambda shape, seed: np.ones(shape, np.float32),
    "bytes": lambda shape, seed: (np.random.default_rng(seed).integers(0, 256, shape) / 255).astype(
        np.float32
    ),
    "extremes": lambda shape, seed: (
        np.random.default_rng(seed).integers(0, 2, shape).astype(np.float32)
    ),
    "tiny": lambda shape, seed: np.full(shape, 1e-30, np.float32),
}


@given(
    count=st.integers(1, 4),
    height=st.integers(4, 40),
    width=st.integers(4, 40),
    content=st.sampled_from(sorted(CONTENTS)),
    grain=st.sampled_from([0.5, 1.0, 2.65]),
    seed=st.integers(0, 99),
)
@settings(max_examples=50, deadline=None)
def test_zero_is_the_identity_to_the_last_bit(
    count, height, width, content: str, grain, seed
) -> None:
    images = CONTENTS[content]((count, 3, height, width), seed)
    adaptor = Bank(grain=grain).build()
    np.testing.assert_array_equal(adaptor(images), images)
    prepared = adaptor.prepare(images)  # with every version made, as in a search
    np.testing.assert_array_equal(adaptor.mix(prepared, np.zeros((2, len(PARTS))))[1], images)


@given(
    height=st.integers(4, 24),
    width=st.integers(4, 24),
    content=st.sampled_from(sorted(CONTENTS)),
    parameters=st.lists(st.floats(-20, 20, width=32), min_size=len(PARTS), max_size=len(PARTS)),
)
@settings(max_examples=50, deadline=None)
def test_whatever_the_parameters_pixels_stay_in_range(
    height, width, content: str, parameters
) -> None:
    images = CONTENTS[content]((2, 3, height, width), 0)
    adapted = BankAdaptor(Bank(), np.array(parameters))(images)
    assert adapted.shape == images.shape and adapted.dtype == np.float32
    assert adapted.min() >= 0 and adapted.max() <= 1  # false for NaN, too


@pytest.mark.parametrize("seed", range(3))
def test_one_image_alone_gets_the_same_answer_as_inside_a_batch(seed: int) -> None:
    adaptor, images = (
        with_parameters(seed),
        some_images(60, 32, 32),
    )  # more than are restored at once
    together = adaptor(images)
    alone = np.concatenate([adaptor(images[i : i + 1]) for i in range(len(images))])
    np.testing.assert_allclose(together, alone, atol=2e-6)
    assert np.abs(together - images).max() > 0.1


def test_to_prepare_once_and_mix_is_the_same_as_to_ask_for_candidates() -> None:
    adaptor, images = with_parameters(0), some_images(30, 32, 32)
    thetas = np.stack([some_parameters(seed) for seed in range(4)])
    thetas[:, 2] = 0  # a version nobody uses is not computed
    np.testing.assert_allclose(
        adaptor.mix(adaptor.prepare(images), thetas), adaptor.candidates(images, thetas), atol=2e-6
    )
    for theta, adapted in zip(thetas, adaptor.candidates(images, thetas), strict=True):
        np.testing.assert_allclose(BankAdaptor(Bank(), theta)(images), adapted, atol=2e-6)


def test_what_is_prepared_is_the_image_and_its_versions() -> None:
    adaptor, images = Bank().build(), some_images(2, 16, 16)
    prepared = adaptor.prepare(images)
    assert prepared.shape == (2, 1 + len(MIXED), 3, 16, 16)
    np.testing.assert_array_equal(prepared[:, 0], images)
    for index in range(len(MIXED)):  # all of one version and nothing else
        theta = np.zeros(len(PARTS), np.float32)
        theta[index] = 1
        wanted = np.clip(images + prepared[:, 1 + index], 0, 1)
        np.testing.assert_allclose(BankAdaptor(Bank(), theta)(images), wanted, atol=2e-6)
        assert np.abs(prepared[:, 1 + index]).max() > 0.01


def adapted_by(name: str, value: float, images: np.ndarray) -> np.ndarray:
    theta = np.zeros(len(PARTS), np.float32)
    theta[NAMES.index(name)] = value
    return BankAdaptor(Bank(), theta)(images)


def test_each_tone_does_what_its_name_says() -> None:
    images = 0.3 + 0.4 * some_images()
    np.testing.assert_allclose(adapted_by("brightness", 0.1, images), images + 0.1, atol=1e-6)
    np.testing.assert_allclose(
        adapted_by("contrast", np.log(1.4), images), 0.5 + 1.4 * (images - 0.5), atol=1e-6
    )
    np.testing.assert_allclose(adapted_by("gamma", np.log(2), images), images**2, atol=1e-6)
    grey = images.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(
        adapted_by("saturation", np.log(0.5), images), (images + grey) / 2, atol=1e-6
    )
    red = images.copy()
    red[:, 0] += 0.06
    np.testing.assert_allclose(adapted_by("red", 0.06, images), red, atol=1e-6)
    standard = adapted_by("standard contrast", 1.0, np.clip(0.1 * images, 0, 1))
    np.testing.assert_allclose(
        standard.mean(axis=(1, 2, 3)), 0.47, atol=0.02
    )  # whatever it was before
    smooth, sharp = (adapted_by("radius 1.2", value, images) for value in (0.5, -0.5))
    assert smooth.std() < images.std() < sharp.std()
    np.testing.assert_allclose(smooth.mean(), images.mean(), atol=5e-3)


@pytest.mark.parametrize("grain", [1.0, 2.65])
def test_a_bank_survives_the_disk_and_onnx(grain: float, tmp_path) -> None:
    adaptor, images = with_parameters(3, grain=grain), some_images(4, 24, 20)
    adaptor.save(tmp_path / "a.safetensors")
    loaded = Adaptor.load(tmp_path / "a.safetensors")
    assert isinstance(loaded, BankAdaptor) and loaded.structure == adaptor.structure
    np.testing.assert_array_equal(loaded(images), adaptor(images))
    assert adaptor.to_onnx(tmp_path / "a.onnx") <= 1e-4
    session = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    for size in ((24, 20), (40, 56)):
        others = some_images(5, *size)
        (answer,) = session.run(None, {"images": others})
        np.testing.assert_allclose(answer, adaptor(others), atol=1e-4)


def test_an_exported_identity_is_one(tmp_path) -> None:
    Bank().build().to_onnx(tmp_path / "a.onnx")
    images = some_images(2, 20, 20)
    (answer,) = onnxruntime.InferenceSession(tmp_path / "a.onnx").run(None, {"images": images})
    np.testing.assert_array_equal(answer, images)


def test_the_gradient_is_the_slope() -> None:
    """Against central differences, where neither a clamp nor a kink is near."""
    images = torch.from_numpy(0.35 + 0.3 * some_images(2, 10, 10))
    adaptor, start = Bank().build(), torch.from_numpy(some_parameters(5, size=0.1))
    weights = torch.from_numpy(
        np.random.default_rng(2).standard_normal(images.shape).astype(np.float32)
    )

    def value(theta):
        return (adaptor.differentiable(images, theta) * weights).sum()

    theta = start.clone().requires_grad_()
    value(theta).backward()
    for index, name in enumerate(NAMES):
        step = torch.zeros(len(PARTS))
        step[index] = 0.02 * float(units()[index])
        slope = float(
            (value(start + step).double() - value(start - step).double()) / (2 * step[index])
        )
        assert float(theta.grad[index]) == pytest.approx(slope, rel=0.02, abs=0.02), name


def test_the_tensor_way_is_the_array_way() -> None:
    adaptor, images = with_parameters(1), some_images(4, 14, 18)
    theta = torch.from_numpy(adaptor.parameters)
    there = adaptor.differentiable(torch.from_numpy(images), theta).numpy()
    np.testing.assert_allclose(there, adaptor(images), atol=2e-6)
    np.testing.assert_allclose(
        adaptor.as_module()(torch.from_numpy(images)).numpy(), adaptor(images), atol=2e-6
    )


def test_it_says_in_words_what_it_does() -> None:
    theta = np.zeros(len(PARTS), np.float32)
    assert BankAdaptor(Bank(), theta).describe() == "leaves the image as it is"
    for name, value in {
        "median": 0.8,
        "radius 1.2": -1.3,
        "contrast": np.log(1.4),
        "brightness": -0.1,
    }.items():
        theta[NAMES.index(name)] = value
    said = BankAdaptor(Bank(), theta).describe()
    assert said == "median 0.80, sharpen radius 1.2 by 1.30, contrast x1.40, darker by 0.10"
    theta[NAMES.index("red")] = 1e-4  # less than anyone would see
    assert BankAdaptor(Bank(), theta).describe() == said


def test_every_part_has_a_name_of_its_own_and_words_for_both_signs() -> None:
    assert len(set(NAMES)) == len(NAMES) and 10 <= len(NAMES) <= 60
    for part in PARTS:
        more, less = part.words(0.5), part.words(-0.5)
        assert more != less and not re.search(r"[{}]", more + less), part
        assert "0.50" in more or "1.65" in more, (
            part
        )  # the amount, or the factor that it is the logarithm of


def test_radii_grow_with_the_grain_and_so_do_their_words() -> None:
    assert Bank.for_size((3, 32, 32)) == Bank.for_size((16, 16)) == Bank(grain=1.0)
    assert Bank.for_size((3, 224, 300)).grain == pytest.approx(7**0.5, abs=0.01)
    theta = np.zeros(len(PARTS), np.float32)
    theta[NAMES.index("motion 2.5")], theta[NAMES.index("radius 0.5")] = -1.2, 0.7
    assert in_words(theta) == "undo motion 2.5 by 1.20, smooth radius 0.5 by 0.70"
    assert in_words(theta, grain=2.0) == "undo motion 5 by 1.20, smooth radius 0.5 by 0.70"
    images = some_images(1, 40, 40)
    fine, coarse = (BankAdaptor(Bank(grain=grain), theta)(images) for grain in (1.0, 2.0))
    assert np.abs(fine - coarse).max() > 0.05


def test_a_large_image_is_restored_too() -> None:
    images = some_images(1, 224, 224)
    adaptor = BankAdaptor(Bank.for_size(images.shape), some_parameters(0))
    adapted = adaptor(images)
    assert adapted.shape == images.shape and np.abs(adapted - images).max() > 0.1


def test_moves_change_one_part_each_by_a_typical_amount() -> None:
    assert (np.count_nonzero(moves(), axis=1) == 1).all() and moves().shape[1] == len(PARTS)
    assert (np.abs(moves()) <= units() + 1e-12).all()
    np.testing.assert_allclose(units(), [1 / scale(part) for part in PARTS])


def test_no_images_are_no_trouble() -> None:
    assert with_parameters(0).candidates(some_images(0), np.zeros((2, len(PARTS)))).shape == (
        2,
        0,
        3,
        12,
        10,
    )


@pytest.mark.parametrize("size", [(3, 8), (8, 3), (1, 1)])
def test_images_that_are_too_small_are_refused(size) -> None:
    with pytest.raises(ImageError, match="4 pixels"):
        with_parameters(0)(some_images(1, *size))


def test_impossible_structures_and_files_are_refused(tmp_path) -> None:
    for grain in (0.0, -1.0, 17.0, float("nan")):
        with pytest.raises(MethodError, match="grain"):
            Bank(grain=grain)
    with pytest.raises(MethodError, match="parameters"):
        BankAdaptor(Bank(), np.zeros(3))
    short = Bank().build()
    short.parameters = short.parameters[:-1]
    short.save(tmp_path / "short.safetensors")
    with pytest.raises(RunError, match="short"):
        Adaptor.load(tmp_path / "short.safetensors")


def test_numbers_learned_for_other_parts_are_refused(tmp_path) -> None:
    path, bank = tmp_path / "bank.safetensors", with_parameters(0, grain=2.0)
    write_adaptor_file(path, "bank", {"grain": 2.0}, bank.parameters)  # of before parts were named
    assert (Adaptor.load(path).parameters == bank.parameters).all()
    write_adaptor_file(
        path, "bank", {**bank.settings, "parts": [NAMES[1], NAMES[0], *NAMES[2:]]}, bank.parameters
    )
    with pytest.raises(RunError, match="other parts"):
        Adaptor.load(path)
