"""The corruptions: the contract of all 19, and values computed by hand where none is random."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from soda_tta.data.corruptions import (
    _REGISTRY,
    CORRUPTIONS,
    SEVERITIES,
    CorruptionError,
    corrupt,
)
from soda_tta.data.corruptions.constants import CIFAR, CONSTANT_SETS, IMAGENET

DETERMINISTIC = {
    "defocus_blur",
    "zoom_blur",
    "gaussian_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg_compression",
    "saturate",
}
every_corruption = pytest.mark.parametrize("name", CORRUPTIONS)


def scene(count: int = 4, height: int = 32, width: int = 32) -> np.ndarray:
    """Images with slopes, edges, black, white and grey, so that every corruption changes them."""
    rows, columns = np.mgrid[:height, :width] / max(height, width)
    images = np.empty((count, height, width, 3))
    for index in range(count):
        wave = 0.5 + 0.5 * np.sin(9 * rows + (7 + index) * columns)
        images[index] = np.stack([wave, rows, 0.3 + 0.4 * (columns > 0.5)], axis=-1)
    images[:, : height // 8] = 0
    images[:, height // 8 : height // 4] = 1
    images[:, height // 4 : height // 3] = 0.5
    return (np.clip(images, 0, 1) * 255).astype(np.uint8)


def planes(images: np.ndarray) -> np.ndarray:
    return (images.transpose(0, 3, 1, 2) / np.float32(255)).astype(np.float32)


# --- the contract, for all 19 ----------------------------------------


def test_there_are_19_corruptions_with_five_severities_in_both_sets() -> None:
    assert len(CORRUPTIONS) == 19
    assert tuple(_REGISTRY) == CORRUPTIONS
    for constants in CONSTANT_SETS.values():
        assert tuple(sorted(constants)) == tuple(sorted(CORRUPTIONS))
        assert all(len(severities) == 5 for severities in constants.values())
    assert all(CIFAR[name] != IMAGENET[name] for name in CORRUPTIONS)


@every_corruption
@pytest.mark.parametrize("constants", CONSTANT_SETS)
@settings(max_examples=12, deadline=None)
@given(
    count=st.integers(0, 3),
    height=st.integers(16, 40),
    width=st.integers(16, 40),
    severity=st.sampled_from(SEVERITIES),
    seed=st.integers(0, 2**40),
    level=st.none() | st.integers(0, 255),
)
def test_shape_and_dtype_stay_and_the_input_is_not_changed(
    name: str,
    constants: str,
    count: int,
    height: int,
    width: int,
    severity: int,
    seed: int,
    level: int | None,
) -> None:
    images = scene(count, height, width)
    if level is not None:
        images[:] = level
    kept = images.copy()
    corrupted = corrupt(images, name, severity, seed, constants)
    assert corrupted.shape == images.shape
    assert corrupted.dtype == np.uint8
    assert (images == kept).all()


@every_corruption
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_give_the_same_8_bit_values_as_bytes(name: str, dtype: type) -> None:
    images = scene()
    corrupted = corrupt(planes(images).astype(dtype), name, 3)
    assert corrupted.dtype == dtype
    assert corrupted.shape == (4, 3, 32, 32)
    assert (np.rint(corrupted.transpose(0, 2, 3, 1) * 255) == corrupt(images, name, 3)).all()


@every_corruption
def test_an_image_does_not_depend_on_its_batch(name: str) -> None:
    images = scene(300)  # more than one internal batch
    whole = corrupt(images, name, 5, seed=3)
    for first, last in [(0, 1), (1, 8), (255, 257), (299, 300)]:
        assert (
            corrupt(images[first:last], name, 5, seed=3, start=first) == whole[first:last]
        ).all()


@every_corruption
def test_the_number_of_workers_does_not_matter(name: str) -> None:
    images = scene(40)

    def work(first: int) -> np.ndarray:
        return corrupt(images[first : first + 10], name, 4, start=first)

    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(work, range(0, 40, 10)))
    assert (np.concatenate(parts) == corrupt(images, name, 4)).all()


@every_corruption
def test_the_seed_decides_the_result(name: str) -> None:
    images = scene()
    first, repeated, other = (corrupt(images, name, 5, seed) for seed in (7, 7, 8))
    assert (first == repeated).all()
    assert (first == other).all() == (name in DETERMINISTIC)


@every_corruption
def test_each_image_of_a_batch_has_its_own_random_draws(name: str) -> None:
    twins = np.repeat(scene(1), 2, axis=0)
    first, second = corrupt(twins, name, 5)
    assert (first == second).all() == (name in DETERMINISTIC)


def test_the_global_random_state_is_not_used() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002 (this is what must not change)
    for name in CORRUPTIONS:
        corrupt(scene(1), name)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


# The published constants of these are not ordered by strength: saturate first fades, then
# exaggerates; spatter turns from water to mud; mild elastic severities tilt more and stretch less;
# glass trades sigma for rounds; snow trades the size of flakes for their number. Pixelate depends
# on how its grid is aligned with that of the scene.
NOT_ORDERED = {"saturate", "spatter", "elastic_transform", "glass_blur", "snow", "pixelate"}


@every_corruption
@pytest.mark.parametrize("constants", CONSTANT_SETS)
def test_a_higher_severity_changes_more(name: str, constants: str) -> None:
    images = scene(24, 64, 64)
    change = [
        np.abs(corrupt(images, name, severity, 0, constants).astype(float) - images).mean()
        for severity in SEVERITIES
    ]
    assert change[0] > 0
    if name not in NOT_ORDERED:
        # A tenth of slack: motion blur 3 and 4 differ only in a tail of negligible weight.
        assert all(higher > 0.9 * lower for lower, higher in itertools.pairwise(change))
        assert change[4] > 1.2 * change[0]


def test_the_size_chooses_the_constants() -> None:
    for side, constants in [(64, "cifar"), (65, "imagenet")]:
        images = scene(1, side, side)
        assert (
            corrupt(images, "contrast") == corrupt(images, "contrast", constants=constants)
        ).all()
    assert (
        corrupt(scene(1), "contrast") != corrupt(scene(1), "contrast", constants="imagenet")
    ).any()


def test_the_number_of_threads_does_not_matter() -> None:
    code = (
        "import hashlib, numpy as np; from soda_tta.data.corruptions import CORRUPTIONS, corrupt;"
        "images = np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3), dtype=np.uint8);"
        "print([hashlib.md5(corrupt(images, name).tobytes()).hexdigest() for name in CORRUPTIONS])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={
                "PYTHONPATH": ":".join(sys.path),
                "OPENBLAS_NUM_THREADS": threads,
                "OMP_NUM_THREADS": threads,
            },
            check=True,
            capture_output=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(outputs) == 1


def test_numpy_integers_are_accepted() -> None:
    assert (
        corrupt(scene(1), "fog", np.int64(3), np.int64(1)) == corrupt(scene(1), "fog", 3, 1)
    ).all()


def test_a_memory_mapped_file_gives_a_plain_array(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", scene(2))
    corrupted = corrupt(np.load(tmp_path / "images.npy", mmap_mode="r"), "snow")
    assert type(corrupted) is np.ndarray
    assert (corrupted == corrupt(scene(2), "snow")).all()


def test_torch_is_not_imported() -> None:
    code = "import sys, soda_tta.data.corruptions; sys.exit('torch' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}
        ).returncode
        == 0
    )


# --- values computed by hand ----------------------------------------


def flat(*rgb: int, side: int = 32) -> np.ndarray:
    return np.broadcast_to(np.array(rgb, np.uint8), (1, side, side, 3)).copy()


@pytest.mark.parametrize(
    "name", ["gaussian_blur", "defocus_blur", "zoom_blur", "glass_blur", "motion_blur", "pixelate"]
)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_blur_does_not_change_an_image_of_one_colour(name: str, severity: int) -> None:
    assert (corrupt(flat(29, 113, 201), name, severity) == (29, 113, 201)).all()


def test_brightness_scales_to_the_raised_value() -> None:
    # Value 100 rises by 0.1 * 255 = 25.5 to 125.5: the channels grow by 1.255.
    assert corrupt(flat(100, 40, 20), "brightness", 2)[0, 0, 0].tolist() == [125, 50, 25]
    assert corrupt(flat(0, 0, 0), "brightness", 2)[0, 0, 0].tolist() == [25, 25, 25]
    assert corrupt(flat(250, 125, 0), "brightness", 5)[0, 0, 0].tolist() == [255, 127, 0]


def test_contrast_pulls_every_channel_to_its_mean() -> None:
    image = flat(0, 100, 200)
    image[:, :16] = (200, 100, 0)
    # Means 100; at severity 5 the factor is 0.15: 100 +- 15, and the constant channel stays.
    assert corrupt(image, "contrast", 5)[0, 0, 0].tolist() == [115, 100, 85]
    assert corrupt(image, "contrast", 5)[0, 31, 0].tolist() == [85, 100, 115]


def test_saturate_scales_the_distance_from_the_value() -> None:
    # Value 200, saturation 0.5; severity 1 takes 0.3 of it: 200 * (1 - 0.15) = 170.
    assert corrupt(flat(200, 100, 100), "saturate", 1)[0, 0, 0].tolist() == [200, 170, 170]
    # Severity 3: 1.5 * 0.5 = 0.75, and half of that for the channel in the middle.
    assert corrupt(flat(200, 150, 100), "saturate", 3)[0, 0, 0].tolist() == [200, 125, 50]
    # Severity 5: 2.5 * 0.5 + 0.2 is cut at 1; grey takes saturation 0.2 and turns reddish.
    assert corrupt(flat(200, 100, 100), "saturate", 5)[0, 0, 0].tolist() == [200, 0, 0]
    assert corrupt(flat(100, 100, 100), "saturate", 5)[0, 0, 0].tolist() == [100, 80, 80]


def test_gaussian_blur_spreads_a_point_by_its_kernel() -> None:
    image = flat(0, 0, 0)
    image[0, 16, 16] = 255
    weights = np.exp(-0.5 * np.arange(-4, 5) ** 2)  # severity 5: sigma 1, cut at 4
    weights /= weights.sum()
    expected = (np.outer(weights, weights) * 255 + 1e-3).astype(int)
    assert (corrupt(image, "gaussian_blur", 5)[0, 12:21, 12:21, 0] == expected).all()


def test_defocus_blur_of_a_point_is_a_disc() -> None:
    image = flat(0, 0, 0)
    image[0, 16, 16] = 255
    # Radius 1.5 holds the 3 x 3 pixels around the centre, and a sigma of 0.1 smooths nothing:
    # 255 / 9 each.
    spread = corrupt(image, "defocus_blur", 5)[0, ..., 0]
    assert (spread[15:18, 15:18] == 28).all()
    assert spread.sum() == 9 * 28


def test_pixelate_averages_boxes() -> None:
    image = np.zeros((1, 224, 224, 3), np.uint8)
    image[:, ::4] = 100  # severity 2 of imagenet halves the side: pairs of rows become 50 and 0
    assert corrupt(image, "pixelate", 2)[0, :4, 0, 0].tolist() == [50, 50, 0, 0]


def test_jpeg_compression_is_the_codec_of_pillow() -> None:
    image = scene(1)
    file = io.BytesIO()
    Image.fromarray(image[0]).save(file, "JPEG", quality=40)
    assert (corrupt(image, "jpeg_compression", 5)[0] == np.asarray(Image.open(file))).all()


def test_zoom_blur_keeps_the_centre_and_spreads_the_rim() -> None:
    image = flat(0, 0, 0)
    image[:, 8:24, 8:24] = 255
    blurred = corrupt(image, "zoom_blur", 5)[0, ..., 0]
    assert (blurred[12:20, 12:20] == 255).all()
    assert (blurred[:2] == 0).all()
    assert 0 < blurred[16, 6] < blurred[16, 7] < 255


def test_noise_has_the_published_strength() -> None:
    grey = np.full((40, 32, 32, 3), 127, np.uint8)
    noisy = {name: corrupt(grey, name, 5) / 255 for name in CORRUPTIONS[:4]}
    assert noisy["gaussian_noise"].std() == pytest.approx(0.10, rel=0.02)
    assert noisy["shot_noise"].std() == pytest.approx(np.sqrt(127 / 255 / 50), rel=0.02)
    assert noisy["speckle_noise"].std() == pytest.approx(0.2 * 127 / 255, rel=0.02)
    assert (noisy["impulse_noise"] == 1).mean() == pytest.approx(0.035, rel=0.05)
    assert (noisy["impulse_noise"] == 0).mean() == pytest.approx(0.035, rel=0.05)


def test_glass_blur_only_moves_pixels_within_reach() -> None:
    # Severity 1 of cifar hardly blurs and has one round: every value comes from the original.
    image = np.zeros((1, 32, 32, 3), np.uint8)
    image[0, ..., 0] = 7 * np.arange(32)[:, None]
    moved = corrupt(image, "glass_blur", 1)[0, ..., 0].astype(int) - image[0, ..., 0]
    assert set(np.unique(moved[2:])) <= {-14, -7, 0, 7} | {-7 * steps for steps in range(32)}
    assert (moved[:2] == 0).all()
    assert (moved != 0).mean() > 0.3


def test_glass_blur_equals_the_loop_it_replaces() -> None:
    from soda_tta.data.corruptions.blur import _scatter

    height, width, shift = 20, 23, 2
    source = _scatter(height, width, shift, [np.random.default_rng(5)])[0]
    rows, columns = (
        np.random.default_rng(5)
        .integers(-shift, shift, (2, height, width), dtype=np.int8)
        .astype(int)
    )
    looped = np.arange(height * width).reshape(height, width)
    for row in range(height - shift, shift, -1):
        for column in range(width - shift, shift, -1):
            looped[row, column] = looped[row + rows[row, column], column + columns[row, column]]
    assert (source == looped.ravel()).all()


def test_frost_uses_photographs(tmp_path: Path) -> None:
    Image.fromarray(np.full((300, 300, 3), 200, np.uint8)).save(tmp_path / "pane.png")
    # Severity 5 of cifar: 0.75 of the image and 0.45 of the frost.
    assert (corrupt(flat(100, 0, 255), "frost", frost=tmp_path)[0, 0, 0] == (165, 90, 255)).all()
    big = corrupt(scene(1, 400, 500), "frost", frost=str(tmp_path))
    assert big.shape == (1, 400, 500, 3)


def test_drawn_frost_covers_any_size() -> None:
    assert corrupt(scene(1, 64, 700), "frost").shape == (1, 64, 700, 3)


def test_fog_keeps_the_brightest_level() -> None:
    # (image + amount * cloud) * 1 / (1 + amount): white under the densest cloud stays white.
    images = flat(0, 0, 0)
    images[:, 16:] = 255
    foggy = corrupt(np.repeat(images, 8, axis=0), "fog", 5)
    assert foggy[:, 16:].min() >= 255 // 2.5  # amount 1.5, no cloud
    assert foggy[:, :16].max() <= 255 * 1.5 / 2.5
    assert foggy[:, :16].mean() > 40


# --- wrong input ----------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"name": "rain"},
            "corruption 'rain' does not exist; choose one of gaussian_noise, shot_noise",
        ),
        ({"name": ["fog"]}, "corruption .* does not exist"),
        ({"severity": 0}, "severity 0 does not exist; choose one of 1, 2, 3, 4, 5"),
        ({"severity": 6}, "severity 6 does not exist"),
        ({"severity": 2.0}, "severity 2.0 does not exist"),
        ({"severity": True}, "severity True does not exist"),
        (
            {"constants": "mnist"},
            "constant set 'mnist' does not exist; choose one of cifar, imagenet",
        ),
        ({"seed": -1}, "seed is -1; pass a whole number of 0 or more"),
        ({"start": 0.5}, "start is 0.5; pass a whole number"),
        ({"images": [[1, 2], [3, 4]]}, "images are a list; pass np.asarray"),
        (
            {"images": np.zeros((1, 32, 32, 3), np.int64)},
            "images are int64; pass uint8 in 0..255 or floating",
        ),
        ({"images": np.zeros((32, 32, 3), np.uint8)}, "add the batch axis"),
        ({"images": np.zeros((1, 3, 32, 32), np.uint8)}, r"pass images.transpose\(0, 2, 3, 1\)"),
        ({"images": np.zeros((1, 32, 32, 3), np.float32)}, r"pass images.transpose\(0, 3, 1, 2\)"),
        ({"images": np.zeros((1, 32, 32, 1), np.uint8)}, "convert them to RGB"),
        ({"images": np.zeros((4, 4), np.uint8)}, "stack RGB images"),
        ({"images": np.zeros((1, 8, 32, 3), np.uint8)}, "sides of 16 pixels or more"),
        (
            {"images": np.full((1, 3, 32, 32), 1.5)},
            r"range from 1.5 to 1.5; scale them to \[0, 1\]",
        ),
        ({"images": np.full((1, 3, 32, 32), -0.5)}, "undo any normalisation"),
        ({"images": np.full((1, 3, 32, 32), np.nan)}, "range from nan"),
        ({"name": "frost", "frost": "nowhere/at/all"}, "is not a folder; pass frost=None"),
    ],
)
def test_wrong_input_raises_one_sentence_with_a_remedy(
    arguments: dict[str, object], message: str
) -> None:
    defaults = {"images": scene(1), "name": "fog"}
    with pytest.raises(CorruptionError, match=message) as caught:
        corrupt(**(defaults | arguments))  # type: ignore[arg-type]
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_a_frost_folder_without_photographs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptionError, match="holds no photograph"):
        corrupt(scene(1), "frost", frost=tmp_path)
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    with pytest.raises(CorruptionError, match=r"broken.png is not a readable image"):
        corrupt(scene(1), "frost", frost=tmp_path)
