"""Live streams with a stated prior and further views."""

import numpy as np
import pytest
from tests.engine.live_traffic import Templates, answered, scenes

from soda_tta.adaptors.answering import weighted
from soda_tta.engine.live import LiveStream
from soda_tta.engine.live_answers import CHECKED, FEWEST_MATCHED, LiveAnswers
from soda_tta.engine.live_search import bounded_information
from soda_tta.errors import MethodError
from soda_tta.objectives import class_weights

EVEN = np.full(4, 0.25)
RANDOM = np.random.default_rng(0)


def names_of(events) -> list[str]:
    return [event.facts()["event"] for event in events]


def test_class_weights_follow_the_recent_answers(tmp_path) -> None:
    model = Templates()
    stream = LiveStream(model, buffer=400, prior="balanced", learn_budget=0)
    images, labels = scenes(300, 1)
    answered(stream, images, labels)
    answering = stream.answering()
    assert answering.weights is not None and not answering.views
    rows = model(images[:5])
    np.testing.assert_allclose(stream(images[:5]), weighted(rows, answering.weights), atol=1e-6)
    assert stream.ledger.queries == {"serve": 305}
    stream.save(tmp_path / "s")
    again = LiveStream.load(tmp_path / "s", model)
    np.testing.assert_array_equal(again(images[:40]), stream(images[:40]))
    assert again.answering().weights.tolist() == stream.answering().weights.tolist()


def test_answers_are_not_matched_while_confident_ones_contradict_the_prior() -> None:
    """A camera that shows one class for a while."""
    answers = LiveAnswers()
    one_class = np.full((200, 4), 0.001) + 0.996 * np.eye(4)[0]
    text = answers.renew(one_class, EVEN, arrived=200)
    assert answers.weights is None and "does not fit" in text
    assert answers.renew(one_class, EVEN, arrived=300) is None  # it was said before
    others = RANDOM.dirichlet(np.full(4, 0.5), 500)
    assert answers.renew(others, EVEN, arrived=400) is None
    np.testing.assert_allclose(answers.weights, class_weights(others, EVEN))
    answers.renew(others[: FEWEST_MATCHED - 1], EVEN, arrived=500)
    assert answers.weights is None  # a new adaptor has given too few answers


def test_a_mirror_image_that_shows_something_else_is_not_used() -> None:
    """The four kinds are patterns, and their mirror images are others."""
    events = []
    model = Templates()
    stream = LiveStream(model, buffer=400, views=2, learn_budget=6, listener=events.append)
    answered(stream, *scenes(200, 1))
    assert not stream.answering().views
    (event,) = [each for each in events if each.facts()["event"] == "answers changed"]
    assert "mirror image is not used" in event.reason
    assert stream.ledger.queries["view"] == 3 * CHECKED
    assert stream.ledger.queries["serve"] == 200


def test_a_mirror_image_that_is_recognised_is_averaged(tmp_path) -> None:
    model = Templates()
    symmetric = lambda images: (model(images) + model(images[..., ::-1])) / 2  # noqa: E731
    stream = LiveStream(symmetric, buffer=400, views=2, learn_budget=6)
    images, labels = scenes(200, 1)
    answered(stream, images, labels)
    assert stream.answering().views == ("mirror",)
    served = stream.ledger.queries["serve"]
    np.testing.assert_allclose(stream(images[:10]), symmetric(images[:10]), atol=1e-6)
    assert stream.ledger.queries["serve"] == served + 20
    stream.save(tmp_path / "s")
    assert LiveStream.load(tmp_path / "s", symmetric).answering().views == ("mirror",)
    assert stream.facts()["sources"][0]["answers"].startswith("mean over the image")


def test_information_against_a_balanced_prior_is_the_same_and_bounded() -> None:
    rows = RANDOM.dirichlet(np.full(4, 0.5), 60)
    np.testing.assert_allclose(
        bounded_information(rows, EVEN), bounded_information(rows), atol=1e-3
    )
    rare = np.array([1 - 3e-9, 1e-9, 1e-9, 1e-9])
    assert np.abs(bounded_information(rows, rare)).max() <= 1.5 * np.log(4) + 1e-9


@pytest.mark.parametrize("prior", ["0.5,0.5"])
def test_a_prior_for_another_number_of_classes_is_refused(prior) -> None:
    stream = LiveStream(Templates(), buffer=400, prior=prior, learn_budget=0)
    images, _ = scenes(100, 1)
    with pytest.raises(MethodError, match="2 shares and the model 4 classes"):
        stream(images)
