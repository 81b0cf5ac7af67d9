"""Every method on the same small white box: seed, budget, and a gain where one is due."""

import warnings

import numpy as np
import pytest
import torch

from soda_tta import adapt, all_methods
from soda_tta.box import ModuleBox
from soda_tta.errors import BoxError, BudgetError
from soda_tta.methods.neighbours import Neighbours, nearest

NAMES = list(all_methods())
SMALL = {"epochs": 3, "batch": 64, "width": 4, "arrival": 64, "finetune_epochs": 1}

MORE = {
    "beta26": {"helper": "soda_tta.testing.data:make_white_box"},
    "tta": {"views": 3},
    "zero": {"views": 5},
}


def small(name: str) -> dict:
    """Those of the small settings that a method has."""
    settings = all_methods()[name].settings
    return {key: value for key, value in SMALL.items() if key in settings} | MORE.get(name, {})


@pytest.fixture(scope="module")
def world():
    """A small trained classifier of stripes, and its images with less contrast."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 4, 160)
    stripes = np.zeros((160, 3, 12, 12), np.float32)
    for image, label in zip(stripes, labels, strict=True):
        place = generator.integers(0, 3)
        if label < 2:
            image[:, place::3, :] = 0.9 if label else 0.5
        else:
            image[:, :, place::3] = 0.9 if label == 3 else 0.5
    noise = 0.1 * generator.standard_normal(stripes.shape)
    stripes = np.clip(stripes + noise, 0, 1).astype(np.float32)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(4),
            torch.nn.Flatten(),
            torch.nn.Linear(128, 4),
        )
        optimiser = torch.optim.Adam(module.parameters(), lr=0.02)
        for _ in range(60):
            optimiser.zero_grad()
            logits = module(torch.from_numpy(stripes))
            torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels)).backward()
            optimiser.step()
    shifted = np.clip(0.2 + 0.6 * stripes, 0, 1).astype(np.float32)
    return ModuleBox(module, logits=True), shifted, labels


def run(world, name: str, **more):
    box, images, _ = world
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return adapt(images, box, method=name, **{**small(name), **more})


@pytest.mark.parametrize("name", NAMES)
def test_queries_are_as_planned_and_the_seed_decides_everything(world, name: str) -> None:
    first = run(world, name, seed=1)
    second = run(world, name, seed=1)
    planned = first.card.plan["queries"]
    # A stream trains on confident images only, and a search ends when nothing helps: their plans
    # are upper bounds.
    if name in ("soda-o", "soda-e"):
        assert all(spent <= planned[purpose] for purpose, spent in first.ledger.queries.items())
    else:
        assert first.ledger.queries == planned
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert np.allclose(first.probabilities.sum(axis=1), 1, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", [1, 3, 12])
def test_a_budget_is_not_exceeded(world, name: str, budget: float) -> None:
    try:
        assert run(world, name, budget=budget).ledger.total <= budget * 160
    except BudgetError as error:  # too little for this method
        assert "raise" in str(error)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if all_methods()[name].needs != "probabilities"]
)
def test_a_white_box_method_refuses_a_black_box_before_the_first_query(world, name: str) -> None:
    box, images, _ = world
    queries = []

    def opaque(batch):
        queries.append(len(batch))
        return box(batch)

    with pytest.raises(BoxError, match="only probabilities"):
        adapt(images, opaque, method=name)
    assert not queries


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("soda-e", {"groups": "none"}),  # twelve patterns with noise: near copies to its verdict
        ("soda", {"epochs": 25, "lr": 0.3, "width": 16}),
        ("soda-fo", {"epochs": 15, "lr": 0.02, "width": 16}),
        ("soda-r", {"epochs": 15, "lr": 0.01, "width": 8}),
        ("soda-o", {"epochs": 10, "lr": 0.3, "width": 16, "arrival": 32, "tau": 1.0}),
        ("da-zoo-input", {"epochs": 25, "lr": 0.3, "width": 16}),
        ("ma-so", {"epochs": 20, "lr": 0.05}),
        ("bn", {}),
        ("tent", {"epochs": 5, "lr": 0.01}),
    ],
)
def test_a_method_that_should_gain_does(world, name: str, settings) -> None:
    _, _, labels = world
    result = run(world, name, **settings)
    before = (result.before.argmax(axis=1) == labels).mean()
    after = (result.probabilities.argmax(axis=1) == labels).mean()
    assert after > before + 0.1, (before, after)


def test_the_deployed_model_is_never_changed(world) -> None:
    box, _, _ = world
    before = box.fingerprint()
    for name in NAMES:
        run(world, name)
    assert box.fingerprint() == before


def test_lame_by_hand() -> None:
    features = np.sqrt(np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9]]))
    np.testing.assert_array_equal(nearest(features, 1), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    one_step = Neighbours(neighbours=1, steps=1).correct(np.array([[0.6, 0.4], [0.8, 0.2]]))
    scores = np.log([[0.6, 0.4], [0.8, 0.2]]) + np.array([[0.8, 0.2], [0.6, 0.4]])
    np.testing.assert_allclose(
        one_step, np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), atol=1e-6
    )


def test_lame_is_finite_for_one_image_and_for_saturated_probabilities() -> None:
    for rows in (np.array([[0.3, 0.7]]), np.eye(2)[[0, 0, 1, 0, 1, 1, 0]]):
        assert np.isfinite(Neighbours().correct(rows)).all()


@pytest.mark.parametrize("name", ["soda-fo", "soda-r"])
def test_a_first_order_run_resumes_bit_for_bit(world, name: str, tmp_path) -> None:
    whole = run(world, name, out=tmp_path / "whole")
    steps = iter(range(100))
    run(world, name, out=tmp_path / "run", stop=lambda: next(steps) == 4)
    resumed = run(world, name, out=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
    assert whole.history == resumed.history
