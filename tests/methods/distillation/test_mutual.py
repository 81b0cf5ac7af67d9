"""BETA's pair of students: splits, targets, MixMatch and the adversarial term."""

import numpy as np
import pytest
import torch

from soda_tta.data import open_images
from soda_tta.methods.distillation import student as net
from soda_tta.methods.distillation.beta import beta
from soda_tta.methods.distillation.mutual import Pair, Reversed, Rival, sharpen


def test_the_gradient_is_reversed() -> None:
    values = torch.ones(2, requires_grad=True)
    (Reversed.apply(values, 0.5) * torch.tensor([1.0, 2.0])).sum().backward()
    np.testing.assert_allclose(values.grad, [-0.5, -1.0])


def test_the_rival_learns_and_counts_its_steps(toy) -> None:
    few = open_images(toy.coloured(4)[0])
    student = net.build_students(toy.small(beta), few, toy.classes, 1)[0]
    images, labels = toy.coloured(60)
    easy = torch.from_numpy(images[labels == 0])
    hard = torch.from_numpy(images[labels == 1])
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


@pytest.mark.parametrize(("batch", "expected"), [(16, True), (2, False)])
def test_a_notice_reports_passes_without_mixmatch(
    toy, make_work, batch: int, expected: bool
) -> None:
    images, labels = toy.coloured(24)
    work = make_work(images, toy.certain(labels))
    outcome = toy.small(beta, epochs=3, finetune_epochs=0, batch=batch).adapt(work)
    (notice,) = outcome.notices or ("",)
    assert bool(notice) == expected
    # of 24 images, there are never 16 easy and 16 hard ones
    assert notice.startswith("MixMatch was left out in 6 of 6 passes") == expected


def test_easy_targets_follow_the_peers_trust_and_hard_ones_both_networks(toy, make_work) -> None:
    images, labels = toy.coloured(8)
    work = make_work(images, toy.certain(labels))
    pair = Pair(toy.small(beta, batch=4), work, np.random.default_rng(0))
    views = [torch.from_numpy(images[:4])] * 2 + [torch.from_numpy(images[4:])] * 2
    for student in pair.students:
        student.eval()
    first, second = (
        student(torch.from_numpy(images)).softmax(dim=1).detach() for student in pair.students
    )
    trust = torch.tensor([1.0, 0.0, 0.5, 0.5])
    targets = pair.targets(0, views, pair.labels[:4], trust)
    certain = torch.eye(toy.classes)[torch.from_numpy(labels[:4])]
    torch.testing.assert_close(targets[0], certain[0])
    torch.testing.assert_close(targets[1:2], sharpen(first[1:2], 0.5))
    torch.testing.assert_close(targets[2:3], sharpen((certain[2:3] + first[2:3]) / 2, 0.5))
    torch.testing.assert_close(targets[8:12], sharpen((first[4:] + second[4:]) / 2, 0.5))
    torch.testing.assert_close(targets[:4], targets[4:8])


@pytest.mark.parametrize(
    "settings", [{}, {"adversarial": 0.1}, {"lam_u": 1.0, "rampup": 0}, {"warmup": 1}]
)
def test_beta_splits_and_matches_in_every_variant(toy, make_work, monkeypatch, settings) -> None:
    images, labels = toy.coloured(64)
    work = make_work(images, toy.teacher(images, labels)(images))
    rows = []

    def recorded(pair, student, stack, targets, ramp, original=Pair.match_loss):
        rows.append((len(stack), float(targets.sum(dim=1).mean())))
        return original(pair, student, stack, targets, ramp)

    monkeypatch.setattr(Pair, "match_loss", recorded)
    # 34 easy and 30 hard images
    monkeypatch.setattr(Pair, "divide", lambda pair, member: np.linspace(0, 1, 64) ** 0.3)
    how = toy.small(beta, epochs=3, finetune_epochs=0, batch=8, **settings)
    answers = how.adapt(work).probabilities
    assert len(rows) == (3 - how.warmup) * 2 * 4
    assert all(count == 32 and total == pytest.approx(1, abs=1e-5) for count, total in rows)
    np.testing.assert_allclose(answers.sum(axis=1), 1, atol=1e-5)


def test_the_split_is_the_students_own_and_the_trust_is_its_peers(
    toy, make_work, monkeypatch
) -> None:
    images, labels = toy.coloured(32)
    work = make_work(images, toy.certain(labels))
    pair = Pair(toy.small(beta, batch=8), work, np.random.default_rng(0))
    own = np.linspace(1, 0.3, 32)  # the first ten are easy
    peer = np.linspace(0, 0.5, 32)
    trusts = []

    def recorded(member, views, labels, trust):
        trusts.append(trust)
        return Pair.targets(pair, member, views, labels, trust)

    monkeypatch.setattr(pair, "targets", recorded)
    pair.mix_match(0, own=own, peer=peer, epoch=1)
    (trust,) = trusts
    assert set(trust.tolist()) <= set(peer[own >= 0.8].astype(np.float32).tolist())
    assert not pair.students[1].training


@pytest.mark.parametrize("trust", [0.0, 1.0])
def test_beta_finishes_if_all_images_are_easy_or_all_are_hard(
    toy, make_work, monkeypatch, trust: float
) -> None:
    images, labels = toy.coloured(32)
    work = make_work(images, toy.teacher(images, labels)(images))
    monkeypatch.setattr(Pair, "divide", lambda pair, member: np.full(32, trust))
    assert np.isfinite(toy.small(beta, batch=8).adapt(work).probabilities).all()
