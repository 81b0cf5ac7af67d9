"""The formulas that DINE and BETA share, by hand."""

import math

import numpy as np
import pytest
import torch

from soda_tta.methods.distillation import student as net
from soda_tta.methods.distillation.dine import dine
from soda_tta.methods.distillation.division import easy_posterior
from soda_tta.methods.distillation.mutual import prior_penalty, ramp_up, sharpen
from soda_tta.methods.distillation.stages import (
    beta_finetune_rate,
    dine_finetune_rate,
    distil_rate,
    finetune,
    refresh,
    smooth,
    tenth,
)


def test_adaptive_smoothing_keeps_the_largest_and_spreads_the_rest() -> None:
    rows = np.array([[0.7, 0.2, 0.1, 0.0], [0.1, 0.3, 0.2, 0.4]])
    largest = [[0.7, 0.1, 0.1, 0.1], [0.2, 0.2, 0.2, 0.4]]
    largest_two = [[0.7, 0.2, 0.05, 0.05], [0.15, 0.3, 0.15, 0.4]]
    np.testing.assert_allclose(smooth(rows), largest, atol=1e-6)
    np.testing.assert_allclose(smooth(rows, 2), largest_two, atol=1e-6)
    np.testing.assert_allclose(smooth(rows, 9), rows, atol=1e-6)


def test_adaptive_smoothing_accepts_rounded_probabilities_and_ties() -> None:
    rounded = smooth(np.array([[0.67, 0.34, 0.0]]), 2)
    np.testing.assert_allclose(rounded, [[0.67 / 1.01, 0.34 / 1.01, 0]], atol=1e-6)
    np.testing.assert_allclose(smooth(np.array([[1.0, 0.0, 0.0]])), [[1, 0, 0]])
    np.testing.assert_allclose(smooth(np.array([[0.4, 0.4, 0.2]])), [[0.4, 0.3, 0.3]], atol=1e-6)


def test_the_information_loss_is_low_for_confident_and_diverse_answers() -> None:
    diverse = torch.tensor([[99.0, 0], [0, 99]])
    same = torch.tensor([[99.0, 0], [99, 0]])
    assert float(net.information_loss(diverse)) == pytest.approx(-math.log(2), abs=1e-3)
    assert float(net.information_loss(same)) == pytest.approx(0, abs=1e-3)
    rows = np.array([[0.8, 0.2], [0.6, 0.4]])
    mean = np.array([0.7, 0.3])
    expected = -(rows * np.log(rows + 1e-5)).sum() / 2 + (mean * np.log(mean + 1e-5)).sum()
    assert float(net.information_loss(torch.from_numpy(np.log(rows)))) == pytest.approx(expected)


def test_divergence_is_summed_over_classes_and_averaged_over_the_batch() -> None:
    target = torch.tensor([[0.7, 0.3], [1.0, 0.0]], dtype=torch.float64)
    rows = torch.tensor([[0.5, 0.5], [0.25, 0.75]], dtype=torch.float64)
    expected = (0.7 * math.log(1.4) + 0.3 * math.log(0.6) + math.log(4)) / 2
    assert float(net.divergence(target, rows.log())) == pytest.approx(expected)


def test_learning_rates_fall_as_specified() -> None:
    assert distil_rate(1) == pytest.approx(0.0274, abs=1e-4)
    mean = np.mean([distil_rate(step / 1000) for step in range(1, 1001)])
    assert mean == pytest.approx(0.140, abs=1e-3)
    assert dine_finetune_rate(0) == pytest.approx(0.1656, abs=1e-4)
    assert dine_finetune_rate(1) == pytest.approx(0.1019, abs=1e-4)
    assert beta_finetune_rate(0) == pytest.approx(1, abs=1e-4)
    assert beta_finetune_rate(1) == pytest.approx(0.1656, abs=1e-4)
    assert [tenth(steps) for steps in (3, 10, 125)] == [1, 1, 12]


def test_the_memory_keeps_its_share() -> None:
    moved = refresh(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]]), 0.6)
    np.testing.assert_allclose(moved, [[0.8, 0.2]], atol=1e-7)


def test_mixing_blends_images_and_targets_with_the_same_share() -> None:
    images = torch.tensor([[[[1.0]]], [[[0.0]]]])
    mixed, targets = net.mix_up(images, torch.eye(2), 0.75, torch.tensor([1, 0]))
    np.testing.assert_allclose(mixed.flatten(), [0.75, 0.25])
    np.testing.assert_allclose(targets, [[0.75, 0.25], [0.25, 0.75]])


def test_sharpening_with_temperature_one_half_squares() -> None:
    sharp = sharpen(torch.tensor([[0.8, 0.2]]), 0.5)
    np.testing.assert_allclose(sharp, [[0.64 / 0.68, 0.04 / 0.68]], rtol=1e-6)


def test_the_prior_penalty_and_the_ramp_by_hand() -> None:
    assert float(prior_penalty(torch.zeros(5, 4))) == pytest.approx(0, abs=1e-6)
    mean = np.array([0.9, 0.1])
    expected = (np.log(0.5 / mean) / 2).sum()
    penalty = float(prior_penalty(torch.from_numpy(np.log(mean))[None]))
    assert penalty == pytest.approx(expected, abs=1e-6)
    assert [ramp_up(epochs, 4) for epochs in (-1, 1, 9)] == [0, 0.25, 1]
    assert ramp_up(0, 0) == 1


def test_the_mixture_splits_low_losses_from_high_ones() -> None:
    generator = np.random.default_rng(0)
    losses = np.concatenate([generator.normal(0.2, 0.05, 80), generator.normal(3, 0.3, 20)])
    trust = easy_posterior(losses)
    assert (trust[:80] > 0.99).all()
    assert (trust[80:] < 0.01).all()


@pytest.mark.parametrize("losses", [np.full(7, 2.5), np.zeros(3), np.array([1.0])])
def test_equal_losses_are_not_split(losses) -> None:
    np.testing.assert_array_equal(easy_posterior(losses), np.ones(len(losses)))


def test_the_mixture_agrees_with_scikit_learn() -> None:
    mixture = pytest.importorskip("sklearn.mixture")
    generator = np.random.default_rng(1)
    losses = np.concatenate([generator.exponential(0.3, 150), generator.normal(2.5, 0.6, 60)])
    scaled = ((losses - losses.min()) / np.ptp(losses))[:, None]
    reference = mixture.GaussianMixture(
        2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=0
    ).fit(scaled)
    expected = reference.predict_proba(scaled)[:, reference.means_.argmin()] >= 0.8
    assert ((easy_posterior(losses) >= 0.8) == expected).mean() > 0.97


def test_finetuning_ends_once_no_answer_changes(toy, make_work) -> None:
    images, labels = toy.coloured(32)
    work = make_work(images, toy.certain(labels))
    how = toy.small(dine, finetune_epochs=30, backbone_lr=1e-12, head_lr=1e-12)
    (student,) = net.build_students(how, work.images, toy.classes, 1)
    student.head["bottleneck"][1].momentum = 0.0  # nothing moves at all
    student.backbone[1].momentum = 0.0
    finetune(how, student, work, np.random.default_rng(0), dine_finetune_rate)
    # 60 steps, and a comparison every 6: the second one ends it
    assert [step.epoch for step in work.history] == [3, 4, 5, 6, 7, 8]
