"""Methods that train a copy of the model: the images go the way they go in service, and chance comes from the seed."""

import numpy as np
import pytest
import torch

from soda_tta import adapt
from soda_tta.box import ModuleBox, Quantised

METHODS = [("bn", {}), ("tent", {"epochs": 2}), ("ma-so", {"epochs": 2, "lr": 0.1})]


@pytest.fixture
def white() -> ModuleBox:
    """A small convolutional classifier with batch norm and dropout."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = (
            torch.nn.Conv2d(3, 8, 3),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.5),
        )
        head = (torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 4))
        return ModuleBox(torch.nn.Sequential(*layers, *head), logits=True)


@pytest.mark.parametrize(("method", "settings"), METHODS)
def test_a_model_behind_a_coarse_transport_is_adapted_to_what_comes_through(
    white, images, method, settings
) -> None:
    coarse = Quantised(white, bits=2)
    behind = adapt(images, coarse, method=method, **settings).probabilities
    assert np.array_equal(
        behind, adapt(coarse.as_received(images), white, method=method, **settings).probabilities
    )
    assert not np.allclose(behind, adapt(images, white, method=method, **settings).probabilities)


def test_the_way_of_an_image_is_that_of_all_wrappers(white, images) -> None:
    twice = Quantised(Quantised(white, bits=3), bits=8, jpeg=50)
    assert np.array_equal(twice(images), white(twice.as_received(images)))
    assert np.unique(twice.as_received(images)).size <= 8 and white.as_received(images) is images


def test_dropout_comes_from_the_seed_and_leaves_torchs_own_chance_alone(white, images) -> None:
    answers = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(answers))
        before = torch.get_rng_state()
        answers.append(
            adapt(images, white, method="ma-so", seed=seed, epochs=2, lr=0.1).probabilities
        )
        assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(answers[0], answers[1]) and not np.array_equal(answers[0], answers[2])


def test_a_model_whose_weights_are_frozen_is_adapted_all_the_same(white, images) -> None:
    free = adapt(images, white, method="ma-so", epochs=2, lr=0.1).probabilities
    white.module.requires_grad_(False)
    assert np.array_equal(
        adapt(images, white, method="ma-so", epochs=2, lr=0.1).probabilities, free
    )
    assert not any(weight.requires_grad for weight in white.module.parameters())
