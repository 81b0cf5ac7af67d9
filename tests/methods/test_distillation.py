"""DINE and BETA: each formula by hand, then whole runs on tiny data."""

import copy
import json
import math
import sys
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from soda_tta import adapt
from soda_tta.box import Input, Ledger, ModuleBox
from soda_tta.data import open_images
from soda_tta.engine.events import Step
from soda_tta.errors import MethodError
from soda_tta.methods.distillation import student as net
from soda_tta.methods.distillation.beta import beta
from soda_tta.methods.distillation.dine import dine
from soda_tta.methods.distillation.distillation import (
    TRAINED,
    beta_finetune_rate,
    dine_finetune_rate,
    distil_rate,
    finetune,
    refresh,
    seeded,
    smooth,
    tenth,
)
from soda_tta.methods.distillation.division import easy_posterior
from soda_tta.methods.distillation.mutual import (
    Pair,
    Reversed,
    Rival,
    prior_penalty,
    ramp_up,
    sharpen,
)
from soda_tta.methods.distillation.views import OPERATIONS, cutout, strong, weak
from soda_tta.methods.method import Work
from soda_tta.zoo import ENTRIES

CLASSES, WRONG = 4, 0.2
COLOURS = np.array([[0.9, 0.2, 0.2], [0.2, 0.9, 0.2], [0.2, 0.2, 0.9], [0.8, 0.8, 0.2]], np.float32)
BOTH = pytest.mark.parametrize("method", [dine, beta], ids=["dine", "beta"])


def coloured(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, CLASSES, count)
    noise = 0.15 * generator.standard_normal((count, 3, 12, 12))
    return np.clip(COLOURS[labels][:, :, None, None] + noise, 0, 1).astype(np.float32), labels


def tiny(classes: int = CLASSES) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return nn.Sequential(
            *(
                nn.Conv2d(3, 8, 3, 2, 1),
                nn.BatchNorm2d(8),
                nn.ReLU(),
                nn.AdaptiveAvgPool2d(2),
                nn.Flatten(),
            ),
            *(nn.Linear(32, classes), nn.Softmax(dim=1)),
        )


class Teacher:
    """A service that is right four times in five, and sure to 0.7 either way. Counts what it is asked."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        generator = np.random.default_rng(5)
        wrong = generator.random(len(labels)) < WRONG
        said = np.where(
            wrong, (labels + generator.integers(1, CLASSES, len(labels))) % CLASSES, labels
        )
        rows = 0.6 * np.eye(CLASSES)[said] + 0.1
        self.answers = {image.tobytes(): row for image, row in zip(images, rows, strict=True)}
        self.asked = 0

    def __call__(self, images: np.ndarray) -> np.ndarray:
        self.asked += len(images)
        return np.stack([self.answers[image.tobytes()] for image in images]).astype(np.float32)


def given_for(images: np.ndarray, before: np.ndarray, seed: int = 0) -> tuple[Work, list[Step]]:
    steps: list[Step] = []
    return Work(open_images(images), None, before, Ledger(None), seed, steps.append), steps


def small(method, **settings):
    return method.but(
        **{
            **dict(epochs=2, finetune_epochs=2, batch=16, module=tiny(), backbone_lr=0.01),
            **settings,
        }
    )


# formulas


def test_adaptive_smoothing_keeps_the_largest_and_spreads_the_rest() -> None:
    rows = np.array([[0.7, 0.2, 0.1, 0.0], [0.1, 0.3, 0.2, 0.4]])
    np.testing.assert_allclose(
        smooth(rows), [[0.7, 0.1, 0.1, 0.1], [0.2, 0.2, 0.2, 0.4]], atol=1e-6
    )
    np.testing.assert_allclose(
        smooth(rows, 2), [[0.7, 0.2, 0.05, 0.05], [0.15, 0.3, 0.15, 0.4]], atol=1e-6
    )
    np.testing.assert_allclose(smooth(rows, 9), rows, atol=1e-6)


def test_adaptive_smoothing_survives_rounded_answers_and_ties() -> None:
    np.testing.assert_allclose(
        smooth(np.array([[0.67, 0.34, 0.0]]), 2), [[0.67 / 1.01, 0.34 / 1.01, 0]], atol=1e-6
    )
    np.testing.assert_allclose(smooth(np.array([[1.0, 0.0, 0.0]])), [[1, 0, 0]])
    np.testing.assert_allclose(smooth(np.array([[0.4, 0.4, 0.2]])), [[0.4, 0.3, 0.3]], atol=1e-6)


def test_information_loss_falls_with_sure_and_diverse_answers() -> None:
    sure_and_diverse, sure_of_one = (
        torch.tensor([[99.0, 0], [0, 99]]),
        torch.tensor([[99.0, 0], [99, 0]]),
    )
    assert float(net.information_loss(sure_and_diverse)) == pytest.approx(-math.log(2), abs=1e-3)
    assert float(net.information_loss(sure_of_one)) == pytest.approx(0, abs=1e-3)
    rows = np.array([[0.8, 0.2], [0.6, 0.4]])
    want = (
        -(rows * np.log(rows + 1e-5)).sum() / 2
        + (np.array([0.7, 0.3]) * np.log([0.7 + 1e-5, 0.3 + 1e-5])).sum()
    )
    assert float(net.information_loss(torch.from_numpy(np.log(rows)))) == pytest.approx(want)


def test_divergence_is_summed_over_classes_and_averaged_over_the_batch() -> None:
    target, rows = np.array([[0.7, 0.3], [1.0, 0.0]]), np.array([[0.5, 0.5], [0.25, 0.75]])
    want = (0.7 * math.log(1.4) + 0.3 * math.log(0.6) + math.log(4)) / 2
    assert float(
        net.divergence(torch.from_numpy(target), torch.from_numpy(np.log(rows)))
    ) == pytest.approx(want)


def test_rates_fall_as_specified() -> None:
    assert distil_rate(1) == pytest.approx(0.0274, abs=1e-4)
    assert np.mean([distil_rate(t / 1000) for t in range(1, 1001)]) == pytest.approx(
        0.140, abs=1e-3
    )
    assert (dine_finetune_rate(0), dine_finetune_rate(1)) == pytest.approx(
        (0.1656, 0.1019), abs=1e-4
    )
    assert (beta_finetune_rate(0), beta_finetune_rate(1)) == pytest.approx((1, 0.1656), abs=1e-4)
    assert [tenth(n) for n in (3, 10, 125)] == [1, 1, 12]


def test_the_memory_moves_by_its_momentum() -> None:
    np.testing.assert_allclose(
        refresh(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]]), 0.6), [[0.8, 0.2]], atol=1e-7
    )


def test_mixing_blends_images_and_targets_with_the_same_share() -> None:
    images, rows = torch.tensor([[[[1.0]]], [[[0.0]]]]), torch.eye(2)
    mixed, targets = net.mix_up(images, rows, 0.75, torch.tensor([1, 0]))
    np.testing.assert_allclose(mixed.flatten(), [0.75, 0.25])
    np.testing.assert_allclose(targets, [[0.75, 0.25], [0.25, 0.75]])


def test_sharpening_at_a_half_squares() -> None:
    np.testing.assert_allclose(
        sharpen(torch.tensor([[0.8, 0.2]]), 0.5), [[0.64 / 0.68, 0.04 / 0.68]], rtol=1e-6
    )


def test_the_prior_and_the_ramp() -> None:
    assert float(prior_penalty(torch.zeros(5, 4))) == pytest.approx(0, abs=1e-6)
    mean = np.array([0.9, 0.1])
    want = (np.log(0.5 / mean) / 2).sum()
    assert float(prior_penalty(torch.from_numpy(np.log(mean))[None])) == pytest.approx(
        want, abs=1e-6
    )
    assert [ramp_up(e, 4) for e in (-1, 1, 9)] == [0, 0.25, 1]
    assert ramp_up(0, 0) == 1


def test_the_mixture_splits_low_losses_from_high_ones() -> None:
    generator = np.random.default_rng(0)
    losses = np.concatenate([generator.normal(0.2, 0.05, 80), generator.normal(3, 0.3, 20)])
    trust = easy_posterior(losses)
    assert (trust[:80] > 0.99).all()
    assert (trust[80:] < 0.01).all()


@pytest.mark.parametrize("losses", [np.full(7, 2.5), np.zeros(3), np.array([1.0])])
def test_losses_all_alike_split_nothing(losses) -> None:
    np.testing.assert_array_equal(easy_posterior(losses), np.ones(len(losses)))


def test_the_mixture_agrees_with_scikit_learn() -> None:
    mixture = pytest.importorskip("sklearn.mixture")
    generator = np.random.default_rng(1)
    losses = np.concatenate([generator.exponential(0.3, 150), generator.normal(2.5, 0.6, 60)])
    scaled = ((losses - losses.min()) / np.ptp(losses))[:, None]
    theirs = mixture.GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=0).fit(
        scaled
    )
    want = theirs.predict_proba(scaled)[:, theirs.means_.argmin()] >= 0.8
    assert ((easy_posterior(losses) >= 0.8) == want).mean() > 0.97


# views


def test_views_are_images_and_follow_the_generator() -> None:
    images = torch.from_numpy(coloured(40)[0])
    for view in (weak, strong):
        first, second = (view(images, np.random.default_rng(2)) for _ in range(2))
        assert first.shape == images.shape
        assert float(first.min()) >= 0
        assert float(first.max()) <= 1
        assert torch.equal(first, second)
        assert not torch.equal(first, images)


def test_a_weak_view_is_a_shifted_perhaps_mirrored_image() -> None:
    image = torch.arange(64.0).view(1, 1, 8, 8).repeat(1, 3, 1, 1) + 1
    padded = torch.nn.functional.pad(image, (1, 1, 1, 1))
    shifts = [padded[:, :, r : r + 8, c : c + 8] for r in range(3) for c in range(3)]
    possible = [*shifts, *(shift.flip(3) for shift in shifts)]
    for seed in range(20):
        view = weak(image, np.random.default_rng(seed))
        assert any(torch.equal(view, other) for other in possible)


def test_no_strength_is_no_change_and_every_operation_stays_finite() -> None:
    images = torch.from_numpy(coloured(6)[0])
    for operation in OPERATIONS:
        rested = operation(images, torch.zeros(6, 1, 1, 1))
        if operation.__name__ not in ("stretch", "posterise"):
            torch.testing.assert_close(rested, images, atol=1e-5, rtol=0)
        assert operation(images * 0, torch.ones(6, 1, 1, 1)).isfinite().all()


def test_a_hole_is_at_most_a_quarter_of_the_image() -> None:
    holes = cutout(torch.zeros(50, 3, 12, 12), np.random.default_rng(0))
    shares = (holes == 0.5).float().mean(dim=(1, 2, 3))
    assert float(shares.min()) > 0
    assert float(shares.max()) <= 0.25


# the student


def test_features_are_what_the_last_linear_layer_sees_whatever_follows_it() -> None:
    module, images = tiny(), torch.from_numpy(coloured(5)[0])
    student = net.Student(tiny(), CLASSES, Input()).eval()
    torch.testing.assert_close(student.features(images), module.eval()[:5](images))
    assert student(images).shape == (5, CLASSES)
    assert not student.head["classifier"].bias.any()


def test_students_share_their_backbone_and_differ_in_their_heads() -> None:
    images = open_images(coloured(5)[0])
    one, two = net.build_students(small(beta, module=None), images, CLASSES, 2)
    backbones = zip(one.backbone.parameters(), two.backbone.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in backbones)
    assert not torch.equal(one.head["bottleneck"][0].weight, two.head["bottleneck"][0].weight)


def test_the_students_own_normalisation_is_that_of_the_images() -> None:
    images = coloured(30)[0]
    mean, std = net.channel_statistics(open_images(images), batch=7)
    np.testing.assert_allclose(mean, images.mean(axis=(0, 2, 3)), atol=1e-5)
    np.testing.assert_allclose(std, images.std(axis=(0, 2, 3)), atol=1e-5)
    assert min(net.channel_statistics(open_images(np.zeros((2, 3, 4, 4), np.float32)))[1]) > 0


@pytest.mark.parametrize("size", [None, (24, 24), (5, 5)])
def test_a_student_sees_images_as_the_network_it_begins_from_was_shown_its_own(size) -> None:
    images = coloured(3)[0]
    facts = Input(
        size=size,
        channels="BGR",
        pixel_range=255.0,
        mean=(103.9, 116.8, 123.7),
        std=(1.0, 2.0, 3.0),
    )
    pixels = math.prod(size or images.shape[2:])
    student = net.Student(
        nn.Sequential(nn.Flatten(), nn.Linear(3 * pixels, 2)), CLASSES, facts
    ).eval()
    want = facts.prepare(images).reshape(3, -1)  # Pillow's filter
    np.testing.assert_allclose(student.features(torch.from_numpy(images)).numpy(), want, atol=0.02)


def test_size_is_the_side_of_the_images_that_the_target_sees() -> None:
    given = open_images(coloured(2)[0])
    for module, target, size in [
        (tiny(), "resnet20-random", 8),
        (None, "imagenet_resnet50", 64),
        (None, TRAINED[0], 0),
    ]:
        facts = net.input_of(dine.but(module=module, target=target, size=size), given)
        assert facts.size == ((size, size) if size else None)
        assert facts.channels == ("BGR" if target == "imagenet_resnet50" else "RGB")


def test_a_batch_of_one_is_left_out_and_counted_so() -> None:
    for count, batch in [(9, 4), (10, 4), (8, 4), (3, 4), (1, 4)]:
        batches = net.batches_of(count, batch, np.random.default_rng(0))
        assert len(batches) == net.batch_count(count, batch)
        assert all(len(indices) > 1 for indices in batches)


def test_a_step_of_distillation_is_the_gradient_of_all_three_terms() -> None:
    how = small(dine, mix=0.7)
    pixels, labels = coloured(8)
    images, memory = (
        torch.from_numpy(pixels),
        torch.from_numpy(smooth(np.eye(CLASSES)[labels] * 0.6 + 0.1)),
    )
    with seeded(4):
        (student,) = net.build_students(how, open_images(pixels), CLASSES, 1)
    twin = copy.deepcopy(student.train())
    loss, information, entropy = net.distil_step(
        how, student, net.optimiser_of(how, student), images, memory, np.random.default_rng(0)
    )
    chance = np.random.default_rng(0)
    share, partners = chance.beta(0.3, 0.3), torch.from_numpy(chance.permutation(8))
    logits = twin(images)
    own = logits.softmax(dim=1).detach()
    mixed = twin(share * images + (1 - share) * images[partners])
    towards = share * own + (1 - share) * own[partners]
    want = (
        net.divergence(memory, logits)
        + net.information_loss(logits)
        + 0.7 * net.divergence(towards, mixed)
    )
    want.backward()
    assert (loss, information) == pytest.approx(
        (want.item(), net.information_loss(logits).item()), rel=1e-4
    )
    assert entropy == pytest.approx(-(memory * own.log()).sum(dim=1).mean().item(), rel=1e-4)
    for one, other in zip(student.parameters(), twin.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None:
            torch.testing.assert_close(one.grad, other.grad, atol=1e-5, rtol=1e-3)


def test_the_gradient_is_turned_round() -> None:
    values = torch.ones(2, requires_grad=True)
    (Reversed.apply(values, 0.5) * torch.tensor([1.0, 2.0])).sum().backward()
    np.testing.assert_allclose(values.grad, [-0.5, -1.0])


def test_the_rival_learns_and_its_influence_grows() -> None:
    student = net.build_students(small(beta), open_images(coloured(4)[0]), CLASSES, 1)[0]
    images, labels = coloured(60)
    easy, hard = (torch.from_numpy(images[labels == k]) for k in (0, 1))
    size = min(len(easy), len(hard))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        rival = Rival(student.size)
    optimiser = torch.optim.SGD(rival.parameters(), lr=0.1)
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        loss = rival(student, easy[:size], hard[:size])
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
    assert rival.steps == 30


# whole runs


@BOTH
def test_one_look_and_no_other_query_in_a_run_that_follows_its_seed(method) -> None:
    images, labels = coloured(50)
    teacher, runs, events = Teacher(images, labels), [], []
    state, given = torch.get_rng_state(), tiny()
    untouched = {name: weight.clone() for name, weight in given.state_dict().items()}
    for seed in (1, 1, 2):
        events.clear()
        how = small(method, module=given)
        runs.append(
            adapt(
                images, teacher, method=how, budget=1, seed=seed, listener=events.append
            ).probabilities
        )
    assert teacher.asked == 3 * 50
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    np.testing.assert_allclose(runs[0].sum(axis=1), 1, atol=1e-5)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(weight, untouched[name]) for name, weight in given.state_dict().items())
    steps = [event for event in events if isinstance(event, Step)]
    assert [step.epoch for step in steps][:3] == [1, 2, 3]
    assert all(
        step.queries == 0 and math.isfinite(step.loss) and step.mutual_information >= -1e-6
        for step in steps
    )


@BOTH
def test_a_function_that_does_not_take_the_number_of_classes_is_told(method) -> None:
    images, _ = coloured(20)
    with pytest.raises(
        MethodError, match=r"called with the number of classes, 4, .* raised TypeError"
    ):
        adapt(images, ModuleBox(tiny()), method=small(method, module=lambda: tiny()))


@BOTH
def test_the_deployed_model_is_not_touched_even_as_its_own_target(method) -> None:
    images, _ = coloured(20)
    deployed = tiny()
    box = ModuleBox(deployed)
    before = box.fingerprint()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run = adapt(images, box, method=small(method, module=deployed))
    assert any("MixMatch was left out" in str(each.message) for each in told) == (
        method is beta
    )  # few images
    assert any("MixMatch was left out" in text for text in run.notices) == (method is beta)
    assert box.fingerprint() == before
    assert run.ledger.total == 20


@BOTH
@pytest.mark.parametrize("count", [2, 3, 17, 33])
def test_few_images_and_ragged_batches(method, count: int) -> None:
    images, labels = coloured(count)
    given, steps = given_for(images, np.eye(CLASSES, dtype=np.float32)[labels])
    rows = small(method, epochs=1, finetune_epochs=1).adapt(given).probabilities
    assert rows.shape == (count, CLASSES)
    assert np.isfinite(rows).all()
    assert len(steps) == 2


@pytest.mark.parametrize(("batch", "told"), [(16, True), (2, False)])
def test_beta_says_where_the_split_left_nothing_to_match(batch: int, told: bool) -> None:
    images, labels = coloured(24)
    given, _ = given_for(images, np.eye(CLASSES, dtype=np.float32)[labels])
    outcome = small(beta, epochs=3, finetune_epochs=0, batch=batch).adapt(given)
    (notice,) = outcome.notices or ("",)
    assert bool(notice) == told
    assert (
        notice.startswith("MixMatch was left out in 6 of 6 passes") == told
    )  # of 24 images no 16 are easy and no 16 hard


@BOTH
def test_one_image_is_refused_with_a_remedy(method) -> None:
    given, _ = given_for(coloured(1)[0], np.eye(CLASSES, dtype=np.float32)[:1])
    with pytest.raises(MethodError, match="at least 2 images"):
        small(method).adapt(given)


@BOTH
def test_the_default_target_is_a_random_resnet20_and_says_so(method) -> None:
    settings = method.settings
    want = dict(
        epochs=120,
        finetune_epochs=30,
        batch=64,
        head_lr=1e-2,
        momentum=0.9,
        weight_decay=1e-3,
        ema=0.6,
    )
    want |= dict(mix=1.0, mixup_alpha=0.3, target="resnet20-random", module=None, backbone_lr=1e-2)
    assert {name: settings[name] for name in want} == want
    assert method.queries(100) == {}
    given, _ = given_for(coloured(4)[0], np.eye(CLASSES, dtype=np.float32))
    assert method.but(epochs=1, finetune_epochs=0).adapt(given).probabilities.shape == (4, CLASSES)


def test_a_network_of_the_zoo_is_a_target_with_the_rate_of_a_trained_one() -> None:
    assert set(TRAINED) <= set(ENTRIES)
    assert [dine.but(target=name).backbone_rate for name in ("resnet32-random", *TRAINED[:2])] == [
        1e-2,
        1e-3,
        1e-3,
    ]


@BOTH
def test_a_module_given_is_described_by_kind_size_and_weights(method) -> None:
    how = method.but(module=tiny())
    assert how.settings["backbone_lr"] == 1e-3
    assert how.settings["target"] == "given"
    assert how.settings["module"].startswith("Sequential, 372 parameters, weights ")
    json.dumps(how.settings)
    other = tiny()
    nn.init.zeros_(other[0].weight)
    assert method.but(module=other).settings["module"] != how.settings["module"]
    assert method.but(module=tiny).settings["module"] == "made by tiny"
    given, _ = given_for(coloured(4)[0], np.eye(CLASSES, dtype=np.float32))
    factory = method.but(module=tiny, epochs=1, finetune_epochs=0)
    assert factory.adapt(given).probabilities.shape == (4, CLASSES)
    assert method.but(backbone_lr="0.5", module=tiny()).backbone_rate == 0.5


@BOTH
@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Flatten(), "no Linear layer"),
        (nn.Sequential(nn.Flatten(), nn.Linear(7, 4)), "does not take these images"),
        (nn.Sequential(nn.Linear(12, 4), nn.Flatten()), "must see one vector"),
        (lambda classes: classes, "returned int"),
    ],
)
def test_a_module_that_cannot_be_used_is_refused_with_a_sentence(
    method, module, words: str
) -> None:
    given, _ = given_for(coloured(4)[0], np.eye(CLASSES, dtype=np.float32))
    with pytest.raises(MethodError, match=words):
        method.but(module=module).adapt(given)


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        (dine, {"target": "vgg"}),
        (dine, {"module": "net.pt"}),
        (dine, {"batch": 1}),
        (dine, {"ema": 2}),
        (dine, {"size": -1}),
        (dine, {"head_lr": 0}),
        (dine, {"finetune_epochs": -1}),
        (dine, {"threshold": 0.5}),
        (beta, {"threshold": 0}),
        (beta, {"temperature": 0}),
        (beta, {"lam_u": -1}),
    ],
)
def test_impossible_numbers_are_refused(method, wrong) -> None:
    with pytest.raises(MethodError):
        method.but(**wrong)


@pytest.mark.parametrize(
    ("method", "epochs", "updates"),
    [(dine, 1, 1), (dine, 10, 9), (dine, 12, 11), (beta, 1, 0), (beta, 10, 9), (beta, 20, 10)],
)
def test_the_memory_is_refreshed_every_tenth_but_never_from_an_untrained_student(
    monkeypatch, method, epochs: int, updates: int
) -> None:
    images, labels = coloured(8)
    given, steps = given_for(images, np.eye(CLASSES, dtype=np.float32)[labels])
    made = []
    module = sys.modules[
        type(method).__module__
    ]  # the registry's `dine` hides the file of that name
    monkeypatch.setattr(module, "refresh", lambda *parts: made.append(parts) or parts[0])
    small(method, epochs=epochs, finetune_epochs=0, batch=4).adapt(given)  # two steps an epoch
    assert len(made) == updates
    assert steps[-1].lr == pytest.approx(1e-2 * distil_rate(1))


def test_finetuning_ends_once_no_answer_changes() -> None:
    images, labels = coloured(32)
    given, steps = given_for(images, np.eye(CLASSES, dtype=np.float32)[labels])
    how = small(dine, finetune_epochs=30, backbone_lr=1e-12, head_lr=1e-12)
    (student,) = net.build_students(how, given.images, CLASSES, 1)
    student.head["bottleneck"][1].momentum = 0.0  # nothing moves at all
    student.backbone[1].momentum = 0.0
    finetune(how, student, given, np.random.default_rng(0), dine_finetune_rate)
    assert [step.epoch for step in steps] == [
        3,
        4,
        5,
        6,
        7,
        8,
    ]  # 60 steps, a look every 6: the second ends it


def test_easy_targets_follow_the_peers_trust_and_hard_ones_both_networks() -> None:
    images, labels = coloured(8)
    given, _ = given_for(images, np.eye(CLASSES, dtype=np.float32)[labels])
    pair = Pair(small(beta, batch=4), given, np.random.default_rng(0))
    views = [torch.from_numpy(images[:4])] * 2 + [torch.from_numpy(images[4:])] * 2
    for student in pair.students:
        student.eval()
    answers = [
        student(torch.from_numpy(images)).softmax(dim=1).detach() for student in pair.students
    ]
    trust = torch.tensor([1.0, 0.0, 0.5, 0.5])
    targets = pair.targets(0, views, pair.labels[:4], trust)
    certain = torch.eye(CLASSES)[torch.from_numpy(labels[:4])]
    torch.testing.assert_close(targets[0], certain[0])
    torch.testing.assert_close(targets[1:2], sharpen(answers[0][1:2], 0.5))
    torch.testing.assert_close(targets[2:3], sharpen((certain[2:3] + answers[0][2:3]) / 2, 0.5))
    torch.testing.assert_close(targets[8:12], sharpen((answers[0][4:] + answers[1][4:]) / 2, 0.5))
    torch.testing.assert_close(targets[:4], targets[4:8])


@pytest.mark.parametrize(
    "settings", [{}, {"adversarial": 0.1}, {"lam_u": 1.0, "rampup": 0}, {"warmup": 1}]
)
def test_beta_divides_and_matches_in_every_variant(monkeypatch, settings) -> None:
    images, labels = coloured(64)
    given, _ = given_for(images, Teacher(images, labels)(images))
    rows = []

    def recorded(pair, student, stack, targets, ramp, original=Pair.match_loss):
        rows.append((len(stack), float(targets.sum(dim=1).mean())))
        return original(pair, student, stack, targets, ramp)

    monkeypatch.setattr(Pair, "match_loss", recorded)
    monkeypatch.setattr(
        Pair, "divide", lambda pair, member: np.linspace(0, 1, 64) ** 0.3
    )  # 34 easy, 30 hard
    how = small(beta, epochs=3, finetune_epochs=0, batch=8, **settings)
    answers = how.adapt(given).probabilities
    assert len(rows) == (3 - how.warmup) * 2 * 4
    assert all(count == 32 and total == pytest.approx(1, abs=1e-5) for count, total in rows)
    np.testing.assert_allclose(answers.sum(axis=1), 1, atol=1e-5)


def test_the_split_is_a_students_own_and_the_trust_its_peers(monkeypatch) -> None:
    images, labels = coloured(32)
    given, _ = given_for(images, np.eye(CLASSES, dtype=np.float32)[labels])
    pair = Pair(small(beta, batch=8), given, np.random.default_rng(0))
    own, peer = np.linspace(1, 0.3, 32), np.linspace(0, 0.5, 32)  # the first ten are easy
    seen = []

    def recorded(member, views, labels, trust):
        seen.append(trust)
        return Pair.targets(pair, member, views, labels, trust)

    monkeypatch.setattr(pair, "targets", recorded)
    pair.mix_match(0, own=own, peer=peer, epoch=1)
    (trust,) = seen
    assert set(trust.tolist()) <= set(peer[own >= 0.8].astype(np.float32).tolist())
    assert not pair.students[1].training


@pytest.mark.parametrize("trust", [0.0, 1.0])
def test_beta_goes_on_when_everything_is_easy_or_hard(monkeypatch, trust: float) -> None:
    images, labels = coloured(32)
    given, _ = given_for(images, Teacher(images, labels)(images))
    monkeypatch.setattr(Pair, "divide", lambda pair, member: np.full(32, trust))
    assert np.isfinite(small(beta, batch=8).adapt(given).probabilities).all()


@BOTH
def test_the_student_outdoes_a_teacher_that_is_wrong_one_time_in_five(method) -> None:
    images, labels = coloured(256)
    before = Teacher(images, labels)(images)
    given, _ = given_for(images, before)
    after = (
        method.but(epochs=12, finetune_epochs=3, batch=32, module=tiny, backbone_lr=1e-2)
        .adapt(given)
        .probabilities
    )
    teacher, student = ((rows.argmax(axis=1) == labels).mean() for rows in (before, after))
    assert teacher == pytest.approx(1 - WRONG, abs=0.06)
    assert student > teacher + 0.1, (teacher, student)
