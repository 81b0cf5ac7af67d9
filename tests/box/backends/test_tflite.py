"""TFLite files in LiteRT, compared with the same calculation in numpy."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from soda_tta.box import Cached, Input, TfliteBox, load_box
from soda_tta.box.backends.tflite import without_excess
from soda_tta.box.facts import carried_over
from soda_tta.box.probabilities import softmax
from soda_tta.testing import check_box

UINT8_SCORES = {"output_dtype": "uint8", "output_quantisation": (1 / 256, 0)}
INT8_SCORES = {"output_dtype": "int8", "output_quantisation": (1 / 256, -128)}
STEP = 1 / 256 + 1e-6  # a rounded score, and the rest that is shared


def expected(tiny_tflite, numbers: np.ndarray) -> np.ndarray:
    """What a tiny model returns for images of these numbers, without rounding of the scores."""
    return softmax(numbers.mean((2, 3)) @ tiny_tflite.matrix)


def test_a_float_model_gives_what_numpy_gives(tiny_tflite, images: np.ndarray) -> None:
    box = load_box(tiny_tflite())
    assert isinstance(box, TfliteBox)
    assert (box.input.layout, box.input.size, box.quantum) == ("NHWC", (8, 8), None)
    assert not box.partial
    np.testing.assert_allclose(box(images), expected(tiny_tflite, images), atol=1e-6)


def test_it_keeps_the_contract_of_a_box(tiny_tflite) -> None:
    check_box(TfliteBox(tiny_tflite(dtype="uint8", quantisation=(1 / 255, 0), **UINT8_SCORES)))


# name: element type, scale and zero point, the numbers that a pixel in 0..1 stands for
PIXELS_ARE_BYTES = {
    "0..1": ("uint8", (1 / 255, 0), lambda pixels: pixels),
    "0..255 as int8": ("int8", (1 / 255, -128), lambda pixels: pixels),
    "-1..1, as Coral's": ("uint8", (1 / 128, 128), lambda pixels: (pixels * 255 - 128) / 128),
    "-1..1 as int8": ("int8", (1 / 127.5, -1), lambda pixels: (pixels * 255 - 127) / 127.5),
}


@pytest.mark.parametrize("case", PIXELS_ARE_BYTES.values(), ids=PIXELS_ARE_BYTES)
def test_without_a_statement_the_bytes_are_the_pixels(tiny_tflite, images, case) -> None:
    dtype, quantisation, numbers = case
    box = TfliteBox(tiny_tflite(dtype=dtype, quantisation=quantisation))
    assert box.input.dtype == dtype and box.quantum == 1 / 255
    rounded = np.rint(images * 255) / 255
    np.testing.assert_allclose(box(images), expected(tiny_tflite, numbers(rounded)), atol=1e-5)


def test_stated_normalisation_is_that_of_the_numbers_behind_the_bytes(tiny_tflite, images) -> None:
    path = tiny_tflite(dtype="int8", quantisation=(0.02, -10))
    box = TfliteBox(path, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), pixel_range=1)
    mean, std = (np.array(box.input.card()[name]).reshape(3, 1, 1) for name in ("mean", "std"))
    numbers = np.clip(np.rint((images - mean) / std / 0.02) * 0.02, -2.36, 2.74)
    np.testing.assert_allclose(box(images), expected(tiny_tflite, numbers), atol=1e-5)
    assert box.quantum == pytest.approx(0.02 * 0.224)


@pytest.mark.parametrize("quantisation", [(1 / 128, 128), (1 / 127.5, 127)])
def test_normalisation_that_is_nearly_the_pixels_keeps_all_256_levels(quantisation) -> None:
    """Mean 127.5 at a zero point of 127 puts every pixel half way between two bytes."""
    input = Input(dtype="uint8", mean=127.5, std=127.5, pixel_range=255, quantisation=quantisation)
    levels = np.arange(256, dtype=np.float32).reshape(1, 1, 16, 16).repeat(3, axis=1)
    np.testing.assert_array_equal(input.prepare(levels / 255), levels.astype(np.uint8))
    assert input.quantum == 1 / 255


@pytest.mark.parametrize("scores", [UINT8_SCORES, INT8_SCORES], ids=["uint8", "int8"])
def test_quantised_scores_are_partial_by_themselves(tiny_tflite, images, scores) -> None:
    box = TfliteBox(tiny_tflite(**scores))
    assert box.partial and box.declared["partial"]
    rows = box(images)
    np.testing.assert_allclose(rows, expected(tiny_tflite, images), atol=2 * STEP)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-6)


def test_a_quantised_model_with_float_input_and_output_is_recognised(tiny_tflite, images) -> None:
    path = tiny_tflite(dtype="int8", quantisation=(1 / 64, 0), rounded_inside=True, **INT8_SCORES)
    box = TfliteBox(path)
    assert box.input.dtype == "float32" and box.output_quantisation is None
    assert box.partial and box.quantum == 1 / 64
    numbers = np.rint(images * 64) / 64
    np.testing.assert_allclose(box(images), expected(tiny_tflite, numbers), atol=2 * STEP)


def test_quantised_scores_outside_of_0_to_1_are_logits(tiny_tflite, images) -> None:
    path = tiny_tflite(outputs=("logits",), output_dtype="int8", output_quantisation=(0.125, 0))
    box = TfliteBox(path)
    assert box.logits and not box.partial
    logits = np.rint(images.mean((2, 3)) @ tiny_tflite.matrix * 8) / 8
    np.testing.assert_allclose(box(images), softmax(logits), atol=1e-2)
    assert not TfliteBox(path, logits=False).logits


def test_many_small_scores_rounded_up_may_sum_to_far_more_than_1() -> None:
    rows = np.full((1, 500), 1 / 256, np.float32)  # each 0.002, of which 1/256 is the nearest
    np.testing.assert_allclose(without_excess(rows, 1 / 256), 1 / 500)
    too_much = np.full((1, 4), 0.5)  # rounding does not explain a sum of 2
    np.testing.assert_array_equal(without_excess(too_much, 1 / 256), too_much)


def test_normalisation_and_labels_are_read_from_the_file(tiny_tflite, images) -> None:
    metadata = tiny_tflite.metadata(mean=[127.5], std=[63.75], labels="labels.txt")
    archive = {"labels.txt": "cat\nchien\nKäfer\n鳥\n".encode()}
    path = tiny_tflite(metadata=metadata, archive=archive)
    box = TfliteBox(path)
    assert box.class_names == ("cat", "chien", "Käfer", "鳥")
    assert Cached(box).class_names == box.class_names
    assert {"pixel_range", "mean", "std"} <= set(box.declared)
    numbers = (images * 255 - 127.5) / 63.75
    np.testing.assert_allclose(box(images), expected(tiny_tflite, numbers), atol=1e-5)
    assert TfliteBox(path, class_names=list("abcd")).class_names == ("a", "b", "c", "d")
    stated = TfliteBox(path, mean=0.5)  # a normalisation is stated as a whole
    assert (stated.input.pixel_range, stated.input.std) == (1, (1, 1, 1))
    assert carried_over(stated.card(), dict(box.declared)) == {}


def test_metadata_without_normalisation_declares_none(tiny_tflite) -> None:
    box = TfliteBox(tiny_tflite(metadata=tiny_tflite.metadata()))
    assert "mean" not in box.declared and box.class_names is None


def test_an_only_text_file_holds_the_labels(tiny_tflite) -> None:
    box = TfliteBox(tiny_tflite(archive={"labelmap.txt": b"a\r\nb\r\nc\r\nd"}))
    assert box.class_names == ("a", "b", "c", "d")


@pytest.mark.parametrize("count", [1, 4, 6])
def test_a_fixed_batch_is_padded(tiny_tflite, images, count: int) -> None:
    box = TfliteBox(tiny_tflite(shape=(5, 8, 8, 3), archive={"labels.txt": b"a\nb\nc\nd"}))
    assert box.batch == 5 and box.fixed_batch
    np.testing.assert_allclose(
        box(images[:count]), expected(tiny_tflite, images[:count]), atol=1e-6
    )


def test_a_model_of_any_size_gets_images_as_they_are(tiny_tflite, images) -> None:
    box = TfliteBox(tiny_tflite(shape=(-1, -1, -1, 3)))
    assert box.input.size is None
    np.testing.assert_allclose(box(images), expected(tiny_tflite, images), atol=1e-6)
    wide = np.random.default_rng(0).random((3, 3, 5, 12), np.float32)
    np.testing.assert_allclose(box(wide), expected(tiny_tflite, wide), atol=1e-6)


def test_one_output_of_two_is_chosen_by_name(tiny_tflite, images) -> None:
    box = TfliteBox(tiny_tflite(outputs=("logits", "probabilities")), output="probabilities")
    np.testing.assert_allclose(box(images), expected(tiny_tflite, images), atol=1e-6)


def test_the_responses_do_not_depend_on_the_threads(tiny_tflite, images) -> None:
    path = tiny_tflite()
    one = TfliteBox(path, threads=1)(images)
    box = TfliteBox(path, threads=3)
    start = threading.Barrier(4)

    def ask(_: int) -> np.ndarray:
        start.wait()
        return box(images)

    with ThreadPoolExecutor(4) as callers:
        for rows in callers.map(ask, range(4)):
            np.testing.assert_array_equal(rows, one)
    assert len(box.idle) <= 3


def test_the_fingerprint_is_of_the_content_and_the_output(tiny_tflite) -> None:
    path = tiny_tflite(outputs=("logits", "probabilities"))
    logits, probabilities = (
        TfliteBox(path, output=name).fingerprint() for name in ("logits", "probabilities")
    )
    assert logits != probabilities and logits.startswith("tflite:sha256:")
    copy = tiny_tflite.write(path.read_bytes())
    assert TfliteBox(copy, output="logits").fingerprint() == logits
