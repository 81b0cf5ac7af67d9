"""The convention of a model, found from unlabelled images."""

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.box import Input, Ledger, Meter
from soda_tta.box.view import turned
from soda_tta.conventions import MOST_QUERIES, Convention, find_convention
from soda_tta.conventions.table import NORMALISATIONS, Candidate, are_near, in_order
from soda_tta.errors import BoxError, ImageError

from .conftest import Classifier, photographs

TRUTHS = [
    *((name, "RGB") for name in NORMALISATIONS),
    ("0 to 1", "BGR"),
    ("ImageNet", "BGR"),
    ("Caffe", "BGR"),
]


def found_for(model: Classifier, images: np.ndarray, **options: object) -> Convention:
    return find_convention(images, load_box(model, input="auto", **options))


@pytest.mark.parametrize(("truth", "order"), TRUTHS)
def test_the_true_convention_is_found(truth: str, order: str, images) -> None:
    model = Classifier(truth, order)
    found = found_for(model, images)
    assert model.queries == found.queries <= MOST_QUERIES
    card = found.box.input.card()
    chosen = Candidate("found", {name: card[name] for name in ("pixel_range", "mean", "std")})
    assert are_near(chosen, Candidate("true", in_order(NORMALISATIONS[truth], order)))
    assert found.box.input.channels == order and found.sure, found.answers
    right = found.box(images).argmax(axis=1) == np.arange(len(images)) % 8
    assert right.mean() > 0.95


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_images_of_a_camera_on_its_side_are_turned_back(turn: int, images) -> None:
    sideways = np.ascontiguousarray(turned(images, turn))
    found = found_for(Classifier(), sideways)
    assert found.facts["turn"] == 360 - turn and "--turn" in found.options
    assert (
        found["orientation"].sure and "surely better than upright" in found["orientation"].sentence
    )


def test_mirrored_images_are_mirrored_back(images) -> None:
    found = found_for(Classifier(), np.ascontiguousarray(images[..., ::-1]), turn=0)
    assert found.box.input.mirror


def test_the_layout_that_the_model_refuses_is_not_used(images) -> None:
    found = found_for(Classifier("-1 to 1", layout="NHWC"), images)
    assert found.box.input.layout == "NHWC" and "--layout" in found.options


def test_logits_are_recognised(images) -> None:
    model = Classifier("0 to 255")
    found = found_for(lambda pixels: np.log(model(pixels) + 1e-9), images)
    assert found.facts["logits"] is True and found.facts["pixel_range"] == 255
    np.testing.assert_allclose(found.box(images).sum(axis=1), 1, rtol=1e-5)


def test_what_is_stated_is_not_searched(images) -> None:
    stated = {"mean": 0.5, "std": 0.5, "channels": "BGR", "layout": "NCHW", "turn": 0}
    found = found_for(Classifier("-1 to 1", "BGR"), images, **stated)
    assert "pixels" not in found and "orientation" not in found
    assert found.queries < 400 and not {"mean", "channels", "turn"} & set(found.facts)


def test_a_model_of_bytes_leaves_only_the_channel_order_open(images) -> None:
    model = Classifier("0 to 255", "BGR")
    box = load_box(lambda pixels: model(pixels.astype(np.float32)), input="auto", dtype="uint8")
    found = find_convention(images, box)
    assert [score["name"] for score in found["pixels"].scores] == [
        "bytes, BGR",
        "bytes, RGB",
    ]


def test_own_normalisations_are_tried(images) -> None:
    scale = {"pixel_range": 1.0, "mean": 0.2, "std": 0.05}
    model = Classifier()
    model.input = Input(**scale)
    box = load_box(model, input="auto", conventions={"mine": scale})
    assert find_convention(images, box)["pixels"].name == "mine, RGB"


def test_grey_images_do_not_change_the_channel_order(images) -> None:
    grey = np.repeat(images.mean(axis=1, keepdims=True), 3, axis=1)
    model = Classifier()

    def of_grey(pixels: np.ndarray) -> np.ndarray:
        return model(np.repeat(pixels.mean(axis=1, keepdims=True), 3, axis=1))

    found = find_convention(grey, load_box(of_grey, input="auto", layout="NCHW"))
    assert found.box.input.channels == "RGB" and "--channels" not in found.options


def test_what_a_model_declares_completely_needs_no_search(images) -> None:
    model = Classifier()
    stated = {"mean": 0, "channels": "RGB", "layout": "NCHW", "turn": 0, "size": 12}
    found = found_for(model, images, **stated)
    assert found.answers == [] and found.queries == model.queries <= 4


def test_a_model_that_recognises_nothing_gives_no_sure_answer(images) -> None:
    random = np.random.default_rng(0)

    def model(pixels: np.ndarray) -> np.ndarray:
        return random.dirichlet(np.ones(8), len(pixels))

    found = find_convention(images, load_box(model, input="auto"))
    assert not found.sure and not found.usable


def test_more_contrast_alone_is_no_evidence(images) -> None:
    # a linear model only gets more confident: its classes stay the same
    weights = np.random.default_rng(1).standard_normal((3 * 12 * 12, 8)).astype(np.float32)

    def model(pixels: np.ndarray) -> np.ndarray:
        centred = pixels - pixels.mean(axis=(2, 3), keepdims=True)
        scores = centred.reshape(len(pixels), -1) @ weights
        rows = np.exp(scores - scores.max(axis=1, keepdims=True))
        return rows / rows.sum(axis=1, keepdims=True)

    found = find_convention(images, load_box(model, input="auto"))
    assert not found.sure and "cannot be told apart" in found["pixels"].sentence


def test_a_convention_that_breaks_the_model_is_out(images) -> None:
    model = Classifier("-1 to 1")

    def fragile(pixels: np.ndarray) -> np.ndarray:
        rows = model(pixels)
        return np.full_like(rows, np.nan) if pixels.max() > 1.5 else rows

    found = find_convention(images, load_box(fragile, input="auto"))
    assert found["pixels"].name.startswith("-1 to 1")
    assert any(score.get("refused") for score in found["pixels"].scores)


def test_hazy_and_noisy_images_are_tidied_first(images) -> None:
    hazy = np.clip(0.6 + 0.2 * (images - 0.5), 0, 1)
    found = found_for(Classifier("-1 to 1"), hazy.astype(np.float32))
    assert found["pixels"].name in ("-1 to 1, RGB", "(x - 127) / 128, RGB")


def test_queries_are_counted_with_their_own_purpose(images) -> None:
    ledger = Ledger(MOST_QUERIES)
    model = Classifier()
    box = load_box(model, input="auto")
    found = find_convention(images, box, meter=Meter(box.box, ledger))
    assert ledger.by_purpose() == {"convention": found.queries} and model.queries == found.queries


def test_stated_facts_are_compared_with_the_others(images) -> None:
    box = load_box(Classifier("-1 to 1"))  # stated: 0 to 1
    found = find_convention(images, box, check=True)
    assert found["pixels"].name.startswith(("-1 to 1", "(x - 127)")) and found.sure
    right = load_box(Classifier("-1 to 1"), mean=0.5, std=0.5)
    assert find_convention(images, right, check=True)["pixels"].name == "as stated"


def test_an_undecided_box_takes_no_images(images) -> None:
    with pytest.raises(BoxError, match="find_convention"):
        load_box(Classifier(), input="auto")(images)
    with pytest.raises(BoxError, match="use 'auto'"):
        load_box(Classifier(), input="guess")


def test_too_few_images_are_refused() -> None:
    with pytest.raises(ImageError, match="15 images are too few"):
        found_for(Classifier(), photographs(15))


def test_a_background_class_is_noticed(images) -> None:
    rows = np.full((len(images), 1001), 1e-5)
    rows[np.arange(len(images)), 1 + np.arange(len(images))] = 1 - 1e-2
    from soda_tta.conventions.search import looks_like_background

    assert looks_like_background(rows) and not looks_like_background(rows[:, 1:])


def test_a_convention_survives_the_card(images) -> None:
    box = load_box(Classifier("ImageNet", "BGR"), input="auto")
    found = find_convention(images, box)
    again = Convention.from_card(found.card(), box.box)
    assert again.facts == found.facts and again.sure == found.sure
    np.testing.assert_array_equal(again.box(images), found.box(images))
