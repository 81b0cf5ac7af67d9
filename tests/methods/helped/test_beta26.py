"""BETA-26 against its description: constants, losses, what the model sees, and when it learns."""

import math

import numpy as np
import pytest
import torch

from soda_tta import MethodError, RunError, adapt, load_box
from soda_tta.methods.helped.beta26 import VARIANTS, beta26
from soda_tta.methods.helped.frame import Frame
from soda_tta.methods.helped.helper import find_helper
from soda_tta.methods.helped.tuning import Constants, Tuning, divergence, entropy
from soda_tta.objectives import mutual_information
from soda_tta.testing.data import make_black_box, make_images, make_white_box

HELPER = "soda_tta.testing.data:make_white_box"
IMAGES = make_images(40)


class Watched:
    """A model that keeps what it was sent."""

    def __init__(self) -> None:
        self.box = make_black_box()
        self.sent: list[np.ndarray] = []

    def __call__(self, images):
        self.sent.append(images.copy())
        return self.box(images)

    @property
    def images(self) -> np.ndarray:
        return np.concatenate(self.sent)


def run(variant: str = "full", box=None, **more):
    settings = {"batch": 16, "helper": HELPER, **more}
    return adapt(IMAGES, box or make_black_box(), method="beta26", variant=variant, **settings)


def test_the_constants_are_the_published_ones_and_their_ratios_are_kept() -> None:
    published = beta26.constants(1000)
    assert published.entropy == pytest.approx(6.217, abs=1e-3)
    assert (published.divergence, published.norm_lr, published.likeness) == (50, 2e-5, 0.05)
    hundred, ten = beta26.constants(100), beta26.constants(10)
    assert hundred.divergence == pytest.approx(6.3, abs=0.01)
    assert ten.divergence == pytest.approx(0.79, abs=0.01)
    assert hundred.norm_lr == pytest.approx(1.6e-4, rel=0.01)
    assert (hundred.likeness, ten.likeness) == pytest.approx((0.158, 0.5), abs=1e-3)
    unscaled = beta26.but(scaled=False).constants(10)
    assert unscaled == published


def test_the_frame_is_the_shrunken_image_inside_a_border_of_bytes() -> None:
    frame = Frame((224, 224), 16, np.random.default_rng(0))
    framed = frame(torch.full((1, 3, 224, 224), 0.25))
    assert framed[0, :, 16:-16, 16:-16].unique().tolist() == pytest.approx([64 / 255])
    assert int(3 * frame.ring.sum()) == 39_936
    assert framed.min() >= 0 and framed.max() <= 1
    np.testing.assert_allclose(framed.detach() * 255, (framed.detach() * 255).round(), atol=1e-4)
    framed.sum().backward()
    gradient = frame.border.grad * (1 - frame.ring)
    assert gradient.abs().max() == 0 and frame.border.grad.abs().min() == 0
    assert (frame.border.grad * frame.ring).abs().sum() == pytest.approx(0.5 * 39_936)


def test_the_loss_of_the_norms_by_hand() -> None:
    constants = Constants(entropy=1.0, divergence=0, norm_lr=1e-3, likeness=0.9)
    tuning = Tuning(find_helper(HELPER, "beta26"), constants)
    rows = torch.tensor([[0.97, 0.01, 0.01, 0.01], [0.25, 0.25, 0.25, 0.25]])
    own = entropy(rows)
    weights = tuning.weights_of(rows)
    assert weights.tolist() == pytest.approx([math.exp(1 - float(own[0])), 0])
    assert float(tuning.loss(rows, weights)) == pytest.approx(float(weights[0] * own[0]))
    assert tuning.mean_answer.tolist() == pytest.approx(rows[0].tolist())
    # like the mean answer: it no longer teaches, and the mean answer stays
    assert float(tuning.loss(rows, weights)) == 0
    other = rows[:1].flip(1)
    assert float(tuning.loss(other, weights[:1])) == pytest.approx(float(weights[0] * own[0]))
    assert tuning.mean_answer.tolist() == pytest.approx((0.9 * rows[0] + 0.1 * other[0]).tolist())


def test_the_divergence_by_hand() -> None:
    first, second = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]])
    expected = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    assert float(divergence(first, second)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_the_model_sees(variant: str) -> None:
    watched = Watched()
    result = run(variant, load_box(watched))
    assert result.queries_per_image == (0 if variant.startswith("helper") else 1)
    if variant.startswith("helper"):
        assert not watched.sent
    elif variant in ("f0", "f1"):
        np.testing.assert_array_equal(watched.images, IMAGES)
        assert not np.isnan(result.before).any()
    else:
        # one pixel of border around the shrunken image; the image as it is is never sent
        assert (watched.images[:16, :, 0] == watched.images[:1, :, 0]).all()
        assert np.isnan(result.before).all()


def test_f0_is_the_weighted_mean() -> None:
    expected = 0.4 * make_white_box()(IMAGES) + 0.6 * make_black_box()(IMAGES)
    np.testing.assert_allclose(run("f0").probabilities, expected, atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_step_has_the_information_of_its_answers(variant: str) -> None:
    adapted = run(variant)
    places = (slice(0, 16), slice(16, 32), slice(32, 40))
    expected = [mutual_information(adapted.probabilities[place]) for place in places]
    assert [step.mutual_information for step in adapted.history] == pytest.approx(expected)
    assert min(expected) > 0


def test_a_batch_is_answered_before_it_teaches() -> None:
    """The first batch is the same with and without learning; later ones are not."""
    full, frozen = (run(each, lr=0.3, reliable=2.0).probabilities for each in ("full", "f2"))
    np.testing.assert_array_equal(full[:16], frozen[:16])
    assert (full[16:] != frozen[16:]).any()


def test_no_reliable_answer_means_no_step() -> None:
    learned, untaught = (run("framed", reliable=share, lr=0.3) for share in (2.0, 1e-9))
    assert (learned.probabilities[16:] != untaught.probabilities[16:]).any()
    frozen = Watched()
    run("f2", load_box(frozen))
    np.testing.assert_array_equal(untaught.probabilities, make_black_box()(frozen.images))


@pytest.mark.parametrize(
    ("helper", "words"),
    [
        (None, "needs a helper"),
        ("resnet7", "there is no helper"),
        ("imagenet_mobilenet_v2_int8", "only probabilities"),
        (torch.nn.Flatten(), "no normalisation layer"),
        (torch.nn.Conv2d(1, 2, 3), "does not take these images"),
        (torch.nn.Sequential(make_white_box().module, torch.nn.Softmax(1)), "logits are expected"),
        (lambda: 3, "must be a PyTorch module"),
    ],
)
def test_a_helper_that_cannot_be_used_is_refused_before_the_first_query(helper, words) -> None:
    watched = Watched()
    with pytest.raises(Exception, match=words):
        run(helper=helper, box=load_box(watched))
    assert not watched.sent


def test_a_helper_for_other_classes_is_refused() -> None:
    def three(images):
        return np.full((len(images), 3), 1 / 3)

    with pytest.raises(MethodError, match="knows 4 classes and the model 3"):
        run(box=load_box(three))


def test_images_that_are_too_small_are_named_with_their_width_first() -> None:
    narrow = make_images(4)[..., :10]
    with pytest.raises(MethodError, match="leaves too little of images of 10x12 pixels"):
        adapt(narrow, make_black_box(), method="beta26", helper=HELPER, pad=3)


def test_the_helper_is_on_the_card_and_is_not_changed(tmp_path) -> None:
    helper = make_white_box()
    before = helper.fingerprint()
    steps = iter([True])
    stopped = run(helper=helper, out=tmp_path, stop=lambda: next(steps, False))
    assert stopped.stopped == "interrupted" and helper.fingerprint() == before
    assert stopped.card.helper["fingerprint"] == before
    with torch.no_grad():
        next(helper.module.parameters()).add_(0.1)
    with pytest.raises(RunError, match="helper"):
        run(helper=helper, out=tmp_path, resume=True)
