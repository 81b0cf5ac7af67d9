"""The local network: its features, its normalisation, and one step of distillation."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from soda_tta.box import Input
from soda_tta.data import open_images
from soda_tta.methods.distillation import student as net
from soda_tta.methods.distillation.beta import beta
from soda_tta.methods.distillation.dine import dine
from soda_tta.methods.distillation.distillation import TRAINED
from soda_tta.methods.distillation.stages import smooth
from soda_tta.methods.tools import seeded


def test_features_are_the_input_of_the_last_linear_layer(toy) -> None:
    module = toy.tiny()
    images = torch.from_numpy(toy.coloured(5)[0])
    student = net.Student(toy.tiny(), toy.classes, Input()).eval()
    torch.testing.assert_close(student.features(images), module.eval()[:5](images))
    assert student(images).shape == (5, toy.classes)
    assert not student.head["classifier"].bias.any()


def test_students_have_equal_backbones_and_different_heads(toy) -> None:
    images = open_images(toy.coloured(5)[0])
    one, two = net.build_students(toy.small(beta, module=None), images, toy.classes, 2)
    backbones = zip(one.backbone.parameters(), two.backbone.parameters(), strict=True)
    assert all(torch.equal(first, second) for first, second in backbones)
    assert not torch.equal(one.head["bottleneck"][0].weight, two.head["bottleneck"][0].weight)


def test_a_student_with_random_weights_normalises_by_the_statistics_of_the_images(toy) -> None:
    images = toy.coloured(30)[0]
    mean, std = net.channel_statistics(open_images(images), batch=7)
    np.testing.assert_allclose(mean, images.mean(axis=(0, 2, 3)), atol=1e-5)
    np.testing.assert_allclose(std, images.std(axis=(0, 2, 3)), atol=1e-5)
    black = open_images(np.zeros((2, 3, 4, 4), np.float32))
    assert min(net.channel_statistics(black)[1]) > 0


@pytest.mark.parametrize("size", [None, (24, 24), (5, 5)])
def test_a_student_prepares_images_as_its_network_expects_them(toy, size) -> None:
    images = toy.coloured(3)[0]
    facts = Input(
        size=size,
        channels="BGR",
        pixel_range=255.0,
        mean=(103.9, 116.8, 123.7),
        std=(1.0, 2.0, 3.0),
    )
    pixels = math.prod(size or images.shape[2:])
    module = nn.Sequential(nn.Flatten(), nn.Linear(3 * pixels, 2))
    student = net.Student(module, toy.classes, facts).eval()
    expected = facts.prepare(images).reshape(3, -1)  # Pillow's filter
    features = student.features(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(features, expected, atol=0.02)


def test_size_is_the_side_of_the_images_that_the_local_network_sees(toy) -> None:
    images = open_images(toy.coloured(2)[0])
    for module, target, size in [
        (toy.tiny(), "resnet20-random", 8),
        (None, "imagenet_resnet50", 64),
        (None, TRAINED[0], 0),
    ]:
        facts = net.input_of(dine.but(module=module, target=target, size=size), images)
        assert facts.size == ((size, size) if size else None)
        assert facts.channels == ("BGR" if target == "imagenet_resnet50" else "RGB")


def test_a_last_batch_of_one_image_is_left_out_and_not_counted() -> None:
    for count, batch in [(9, 4), (10, 4), (8, 4), (3, 4), (1, 4)]:
        batches = net.batches_of(count, batch, np.random.default_rng(0))
        assert len(batches) == net.batch_count(count, batch)
        assert all(len(indices) > 1 for indices in batches)


def test_a_step_of_distillation_is_the_gradient_of_all_three_terms(toy) -> None:
    how = toy.small(dine, mix=0.7)
    pixels, labels = toy.coloured(8)
    images = torch.from_numpy(pixels)
    memory = torch.from_numpy(smooth(np.eye(toy.classes)[labels] * 0.6 + 0.1))
    with seeded(4):
        (student,) = net.build_students(how, open_images(pixels), toy.classes, 1)
    twin = copy.deepcopy(student.train())
    loss, information, cross_entropy = net.distil_step(
        how, student, net.optimiser_of(how, student), images, memory, np.random.default_rng(0)
    )
    random = np.random.default_rng(0)
    share = random.beta(0.3, 0.3)
    partners = torch.from_numpy(random.permutation(8))
    logits = twin(images)
    own = logits.softmax(dim=1).detach()
    mixed = twin(share * images + (1 - share) * images[partners])
    towards = share * own + (1 - share) * own[partners]
    expected = (
        net.divergence(memory, logits)
        + net.information_loss(logits)
        + 0.7 * net.divergence(towards, mixed)
    )
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-4)
    assert information == pytest.approx(net.information_loss(logits).item(), rel=1e-4)
    by_hand = -(memory * own.log()).sum(dim=1).mean().item()
    assert cross_entropy == pytest.approx(by_hand, rel=1e-4)
    for one, other in zip(student.parameters(), twin.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None:
            torch.testing.assert_close(one.grad, other.grad, atol=1e-5, rtol=1e-3)
