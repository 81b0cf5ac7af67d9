"""The restoration bank: exact at zero, in range, the same for arrays, tensors and ONNX."""

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.adaptors import Adaptor, Bank, BankAdaptor, Identity, PaperNetwork
from soda_tta.adaptors.files import write_adaptor_file
from soda_tta.adaptors.parts import MIXED, PARTS, units
from soda_tta.errors import ImageError, MethodError, RunError
from soda_tta.settings import meanings_of

NAMES = [part.name for part in PARTS]


def some_images(count: int = 3, height: int = 12, width: int = 10, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 3, height, width), dtype=np.float32)


def some_parameters(seed: int = 0, size: float = 1.0) -> np.ndarray:
    values = np.random.default_rng([seed, 1]).standard_normal(len(PARTS))
    return (size * units() * values).astype(np.float32)


def bank_with(parameters: np.ndarray, grain: float = 1.0) -> BankAdaptor:
    return BankAdaptor(structure=Bank(grain=grain), parameters=parameters)


def some_bank(seed: int, grain: float = 1.0) -> BankAdaptor:
    return bank_with(some_parameters(seed), grain)


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
    prepared = adaptor.prepare(images)  # with every version, as in a search
    np.testing.assert_array_equal(adaptor.mix(prepared, np.zeros((2, len(PARTS))))[1], images)


@given(
    height=st.integers(4, 24),
    width=st.integers(4, 24),
    content=st.sampled_from(sorted(CONTENTS)),
    parameters=st.lists(st.floats(-20, 20, width=32), min_size=len(PARTS), max_size=len(PARTS)),
)
@settings(max_examples=50, deadline=None)
def test_pixels_stay_in_range_for_any_parameters(height, width, content: str, parameters) -> None:
    images = CONTENTS[content]((2, 3, height, width), 0)
    adapted = bank_with(np.array(parameters))(images)
    assert adapted.shape == images.shape and adapted.dtype == np.float32
    assert adapted.min() >= 0 and adapted.max() <= 1  # also false for NaN


@pytest.mark.parametrize("seed", range(3))
def test_one_image_alone_is_adapted_as_inside_a_batch(seed: int) -> None:
    adaptor = some_bank(seed)
    images = some_images(60, 32, 32)  # more than are restored at a time
    together = adaptor(images)
    alone = np.concatenate([adaptor(images[i : i + 1]) for i in range(len(images))])
    np.testing.assert_allclose(together, alone, atol=5e-6)
    assert np.abs(together - images).max() > 0.1


def test_prepare_and_mix_give_the_same_as_candidates() -> None:
    adaptor = some_bank(0)
    images = some_images(30, 32, 32)
    thetas = np.stack([some_parameters(seed) for seed in range(4)])
    thetas[:, 2] = 0  # a version that is not used is not computed
    np.testing.assert_allclose(
        adaptor.mix(adaptor.prepare(images), thetas), adaptor.candidates(images, thetas), atol=2e-6
    )
    for theta, adapted in zip(thetas, adaptor.candidates(images, thetas), strict=True):
        np.testing.assert_allclose(bank_with(theta)(images), adapted, atol=2e-6)


def with_defects(images: np.ndarray) -> np.ndarray:
    """The images with what repairs look for: a wrong pixel, and coarse pixels."""
    images = images.copy()
    images[:, :, 1::2] = images[:, :, ::2]
    images[:, 0, 8, 8] = 0.0
    return images


def test_prepare_returns_the_image_and_the_differences_to_its_versions() -> None:
    adaptor = Bank().build()
    images = with_defects(some_images(2, 16, 16))
    prepared = adaptor.prepare(images)
    assert prepared.shape == (2, 1 + len(MIXED), 3, 16, 16)
    np.testing.assert_array_equal(prepared[:, 0], images)
    for index in range(len(MIXED)):  # all of one version and nothing else
        theta = np.zeros(len(PARTS), np.float32)
        theta[index] = 1
        wanted = np.clip(images + prepared[:, 1 + index], 0, 1)
        np.testing.assert_allclose(bank_with(theta)(images), wanted, atol=2e-6)
        assert np.abs(prepared[:, 1 + index]).max() > 0.01


def adapted_by(name: str, value: float, images: np.ndarray) -> np.ndarray:
    theta = np.zeros(len(PARTS), np.float32)
    theta[NAMES.index(name)] = value
    return bank_with(theta)(images)


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
    np.testing.assert_allclose(standard.mean(axis=(1, 2, 3)), 0.47, atol=0.02)  # independent of it
    smooth, sharp = (adapted_by("radius 1.2", value, images) for value in (0.5, -0.5))
    assert smooth.std() < images.std() < sharp.std()
    np.testing.assert_allclose(smooth.mean(), images.mean(), atol=5e-3)


@pytest.mark.parametrize("grain", [1.0, 2.65])
def test_a_bank_is_the_same_from_disk_and_from_onnx(grain: float, tmp_path) -> None:
    adaptor = some_bank(3, grain=grain)
    images = some_images(4, 24, 20)
    adaptor.save(tmp_path / "a.safetensors")
    loaded = Adaptor.load(tmp_path / "a.safetensors")
    assert isinstance(loaded, BankAdaptor) and loaded.structure == adaptor.structure
    np.testing.assert_array_equal(loaded(images), adaptor(images))
    assert adaptor.to_onnx(tmp_path / "a.onnx") <= 1e-4
    session = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    for size in ((24, 20), (40, 56)):
        others = some_images(5, *size)
        (adapted,) = session.run(None, {"images": others})
        np.testing.assert_allclose(adapted, adaptor(others), atol=1e-4)


def test_an_exported_identity_changes_nothing(tmp_path) -> None:
    Bank().build().to_onnx(tmp_path / "a.onnx")
    images = some_images(2, 20, 20)
    (adapted,) = onnxruntime.InferenceSession(tmp_path / "a.onnx").run(None, {"images": images})
    np.testing.assert_array_equal(adapted, images)


def test_the_gradient_equals_central_differences() -> None:
    """Where neither a clamp nor a kink is near."""
    images = torch.from_numpy(0.35 + 0.3 * some_images(2, 10, 10))
    adaptor = Bank().build()
    start = torch.from_numpy(some_parameters(5, size=0.1))
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


def test_tensors_and_arrays_give_the_same() -> None:
    adaptor = some_bank(1)
    images = some_images(4, 14, 18)
    theta = torch.from_numpy(adaptor.parameters)
    from_tensors = adaptor.differentiable(torch.from_numpy(images), theta).numpy()
    np.testing.assert_allclose(from_tensors, adaptor(images), atol=2e-6)
    np.testing.assert_allclose(
        adaptor.as_module()(torch.from_numpy(images)).numpy(), adaptor(images), atol=2e-6
    )


def test_radii_grow_with_the_grain() -> None:
    assert Bank.for_size((3, 32, 32)) == Bank.for_size((16, 16)) == Bank(grain=1.0)
    assert Bank.for_size((3, 224, 300)).grain == pytest.approx(7**0.5, abs=0.01)
    theta = np.zeros(len(PARTS), np.float32)
    theta[NAMES.index("motion 2.5")] = -1.2
    theta[NAMES.index("radius 0.5")] = 0.7
    images = some_images(1, 40, 40)
    fine, coarse = (bank_with(theta, grain)(images) for grain in (1.0, 2.0))
    assert np.abs(fine - coarse).max() > 0.05


def test_a_large_image_is_restored() -> None:
    images = some_images(1, 224, 224)
    adaptor = BankAdaptor(structure=Bank.for_size(images.shape), parameters=some_parameters(0))
    adapted = adaptor(images)
    assert adapted.shape == images.shape and np.abs(adapted - images).max() > 0.1


def test_an_empty_batch_is_accepted() -> None:
    adapted = some_bank(0).candidates(some_images(0), np.zeros((2, len(PARTS))))
    assert adapted.shape == (2, 0, 3, 12, 10)


@pytest.mark.parametrize("size", [(3, 8), (8, 3), (1, 1)])
def test_images_that_are_too_small_are_refused(size) -> None:
    with pytest.raises(ImageError, match="4 pixels"):
        some_bank(0)(some_images(1, *size))


def test_impossible_structures_and_files_are_refused(tmp_path) -> None:
    for grain in (0.0, -1.0, 17.0, float("nan")):
        with pytest.raises(MethodError, match="grain"):
            Bank(grain=grain)
    with pytest.raises(MethodError, match="parameters"):
        bank_with(np.zeros(3))
    short = Bank().build()
    short.parameters = short.parameters[:-1]
    short.save(tmp_path / "short.safetensors")
    with pytest.raises(RunError, match="short"):
        Adaptor.load(tmp_path / "short.safetensors")


def test_a_file_with_other_parts_is_read_where_they_are_known(tmp_path) -> None:
    path = tmp_path / "bank.safetensors"
    parameters = np.array([0.8, 0.25], np.float32)
    write_adaptor_file(path, "bank", {"grain": 2.0, "parts": ["median", "gamma"]}, parameters)
    loaded = Adaptor.load(path)
    assert repr(loaded) == "Bank(grain=2.0).adaptor({'median': 0.8, 'gamma': 0.25})"
    parts = {"grain": 2.0, "parts": ["median", "non-local means 0.1"]}
    write_adaptor_file(path, "bank", parts, np.array([0.8, 0], np.float32))
    assert repr(Adaptor.load(path)) == "Bank(grain=2.0).adaptor({'median': 0.8})"
    write_adaptor_file(path, "bank", parts, parameters)
    with pytest.raises(RunError, match=r"uses non-local means 0\.1, which this version does not"):
        Adaptor.load(path)


def test_a_file_that_does_not_name_its_parts_is_refused(tmp_path) -> None:
    path = tmp_path / "bank.safetensors"
    write_adaptor_file(path, "bank", {"grain": 2.0}, np.zeros(20, np.float32))
    with pytest.raises(RunError, match="names 0 parts of the bank for 20 parameters"):
        Adaptor.load(path)


def test_the_setting_has_a_help_text() -> None:
    assert all(meanings_of(Bank()).values())


@pytest.mark.parametrize("seed", range(5))
def test_what_an_adaptor_prints_makes_the_same_adaptor(seed: int) -> None:
    adaptor = some_bank(seed, grain=2.65)
    copy = eval(repr(adaptor), {"Bank": Bank})
    assert copy.settings == adaptor.settings
    assert copy.parameters.tobytes() == adaptor.parameters.tobytes()
    assert repr(Bank().build()) == "Bank(grain=1.0).adaptor({})"
    assert type(eval(repr(Identity()))) is Identity


def test_a_bank_is_made_from_names_of_its_parts() -> None:
    assert repr(Bank().adaptor({"median": 0.8})) == "Bank(grain=1.0).adaptor({'median': 0.8})"
    with pytest.raises(MethodError, match="has no part medium; it has wrong pixels"):
        Bank().adaptor({"medium": 1})


def test_an_adaptor_of_many_parameters_prints_how_to_load_it() -> None:
    text = repr(PaperNetwork().build(seed=0))
    assert "3,523 parameters" in text and "Adaptor.load(path)" in text
    assert text.startswith("<") and text.endswith(">")
