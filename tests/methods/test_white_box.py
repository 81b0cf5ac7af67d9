"""Methods that train a copy of the model: images as the model receives them, a seed for dropout."""

import numpy as np
import pytest
import torch

from soda_tta import adapt
from soda_tta.box import ModuleBox, Quantised
from soda_tta.objectives import mutual_information

METHODS = [("bn", {}), ("tent", {"epochs": 2}), ("ma-so", {"epochs": 2, "lr": 0.1})]


@pytest.fixture
def white() -> ModuleBox:
    """A small convolutional classifier with batch norm and dropout."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.5),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(8, 4),
        )
        return ModuleBox(module, logits=True)


@pytest.mark.parametrize(("method", "settings"), METHODS)
def test_a_model_behind_a_coarse_transport_adapts_to_the_images_it_receives(
    white, images, method, settings
) -> None:
    coarse = Quantised(white, bits=2)
    behind = adapt(images, coarse, method=method, **settings).probabilities
    received = adapt(coarse.as_received(images), white, method=method, **settings).probabilities
    assert np.array_equal(behind, received)
    assert not np.allclose(behind, adapt(images, white, method=method, **settings).probabilities)


def test_received_images_have_passed_all_wrappers(white, images) -> None:
    twice = Quantised(Quantised(white, bits=3), bits=8, jpeg=50)
    assert np.array_equal(twice(images), white(twice.as_received(images)))
    assert np.unique(twice.as_received(images)).size <= 8
    assert white.as_received(images) is images


def test_dropout_follows_the_seed_and_does_not_change_torchs_own_random_state(
    white, images
) -> None:
    answers = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(answers))
        before = torch.get_rng_state()
        run = adapt(images, white, method="ma-so", seed=seed, epochs=2, lr=0.1)
        answers.append(run.probabilities)
        assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(answers[0], answers[1])
    assert not np.array_equal(answers[0], answers[2])


def test_a_step_of_tent_has_the_information_of_its_answers(white, images) -> None:
    run = adapt(images, white, method="tent", batch=len(images))
    (step,) = run.history
    assert step.mutual_information == pytest.approx(mutual_information(run.probabilities))
    assert step.mutual_information > 0


def test_a_model_with_frozen_weights_is_adapted_alike(white, images) -> None:
    free = adapt(images, white, method="ma-so", epochs=2, lr=0.1).probabilities
    white.module.requires_grad_(False)
    frozen = adapt(images, white, method="ma-so", epochs=2, lr=0.1).probabilities
    assert np.array_equal(frozen, free)
    assert not any(weight.requires_grad for weight in white.module.parameters())
