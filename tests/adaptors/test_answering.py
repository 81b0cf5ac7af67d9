"""From responses to answers: views, class weights, and the files that hold them."""

import json

import numpy as np
import pytest
from safetensors import safe_open

from soda_tta.adaptors import Adaptor, Answering, Bank, Identity
from soda_tta.adaptors.answering import PLAIN, VIEWS, weighted
from soda_tta.adaptors.files import KEY, KEY_WITH_ANSWERS
from soda_tta.errors import MethodError, RunError

RANDOM = np.random.default_rng(0)


def test_weights_multiply_and_rows_sum_to_one() -> None:
    rows = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    by_hand = np.array([[0.6, 0.6, 0.3], [0.2, 0.4, 1.8]]) / [[1.5], [2.4]]
    np.testing.assert_allclose(weighted(rows, np.array([1.0, 2.0, 3.0])), by_hand, atol=1e-9)
    np.testing.assert_array_equal(weighted(rows, None), rows)


def test_a_class_without_weight_is_never_the_answer_and_a_lost_row_is_no_nan() -> None:
    rows = np.array([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0]])
    answers = weighted(rows, np.array([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(answers, [[0, 0.5, 0.5], [0, 1, 0]], atol=1e-9)


def test_an_image_is_answered_alone_as_in_a_batch() -> None:
    answering = Answering(("mirror", "shift"), np.array([0.5, 2.0, 1.0]))
    images = RANDOM.random((5, 3, 8, 8), np.float32)

    def model(batch):
        scores = np.stack([batch[:, :, :4].mean((1, 2, 3)), batch[..., :3].mean((1, 2, 3))], 1)
        rows = np.concatenate([scores, 0.5 + 0 * scores[:, :1]], axis=1)
        return rows / rows.sum(axis=1, keepdims=True)

    together = answering.received(model(answering.sent(images)))
    alone = [answering.received(model(answering.sent(images[i : i + 1])))[0] for i in range(5)]
    np.testing.assert_allclose(together, alone, atol=1e-7)
    mean = (model(images) + model(images[..., ::-1]) + model(VIEWS["shift"](images))) / 3
    np.testing.assert_allclose(together, weighted(mean, answering.weights), atol=1e-6)


def test_plain_answers_are_the_responses_themselves() -> None:
    rows = RANDOM.dirichlet(np.ones(3), 4).astype(np.float32)
    assert PLAIN.received(rows) is rows
    assert PLAIN.sent(rows) is rows


@pytest.mark.parametrize("adaptor", [Identity(), Bank().adaptor({"median": 0.5})])
def test_a_file_keeps_views_and_weights(tmp_path, adaptor) -> None:
    path = tmp_path / "a.safetensors"
    weights = RANDOM.random(1000)
    adaptor.answered(Answering(("mirror",), weights)).save(path)
    loaded = Adaptor.load(path)
    assert loaded.answering.views == ("mirror",)
    np.testing.assert_array_equal(loaded.answering.weights, weights)
    assert loaded.kind == adaptor.kind
    assert adaptor.answering is PLAIN  # the original stays as it is


def test_a_plain_file_is_as_before_and_another_one_is_refused_by_older_versions(tmp_path) -> None:
    """Older versions look for one key only, and would otherwise ignore the weights."""
    keys = []
    for number, answering in enumerate([PLAIN, Answering(("mirror",))]):
        path = tmp_path / f"{number}.safetensors"
        Identity().answered(answering).save(path)
        with safe_open(path, framework="numpy") as file:
            keys.append(file.metadata())
    assert json.loads(keys[0][KEY]) == {"kind": "identity", "settings": {}}
    assert set(keys[1]) == {KEY_WITH_ANSWERS}


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 2, "views": [], "weights": None},
        {"version": 1, "views": ["upside down"], "weights": None},
        {"version": 1, "views": ["mirror", "mirror"], "weights": None},
        {"version": 1, "views": [], "weights": [1.0, -1.0]},
        {"version": 1, "views": [], "weights": [float("inf"), 1.0]},
        {"version": 1, "views": [], "weights": [0.0, 0.0]},
        {"views": []},
    ],
)
def test_damaged_answers_are_refused(tmp_path, wrong, monkeypatch) -> None:
    path = tmp_path / "a.safetensors"
    monkeypatch.setattr(Answering, "settings", wrong)
    Identity().answered(Answering(("mirror",))).save(path)
    with pytest.raises(RunError, match="cannot be built"):
        Adaptor.load(path)


def test_weights_of_another_model_are_refused() -> None:
    with pytest.raises(MethodError, match="for 2 classes and the model has 3"):
        weighted(np.full((1, 3), 1 / 3), np.ones(2))
