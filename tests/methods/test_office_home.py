"""The Office-Home protocol by hand: what is mixed, the loss, and the cost."""

import numpy as np
import pytest
import torch

from soda_tta import adapt
from soda_tta.box import ModuleBox
from soda_tta.errors import MethodError
from soda_tta.methods.office_home import MixedBatch, soda_office_home, soda_r_office_home

SMALL = {"epochs": 4, "warmup": 2, "batch": 20, "width": 4}


def test_the_settings_are_those_of_the_paper() -> None:
    settings = soda_office_home.settings
    expected = {
        "epochs": 60,
        "warmup": 10,
        "agreement": 0.1,
        "information": 0.01,
        "tau": 0.5,
        "rho": 0.0,
        "directions": 5,
        "lr": 1e-3,
    }
    assert {name: settings[name] for name in expected} == expected
    assert soda_office_home.queries(1000) == {"probe": 1000 * (60 * 6 + 50), "evaluate": 1000}
    deeper = soda_r_office_home.settings
    assert deeper["pairs"] == deeper["blocks"] == 2
    assert soda_r_office_home.needs == "gradients"


def test_in_the_warm_up_every_image_is_unmixed_and_has_its_pseudo_label(images, make_work) -> None:
    beliefs = np.array([[0.4, 0.6], [0.9, 0.1]])
    work = make_work(images[:2], beliefs)
    batch = soda_office_home.labelled(work, beliefs, np.array([1, 0]))
    assert batch.targets.tolist() == [[1, 0], [0, 1]]
    assert batch.supervised.all()
    np.testing.assert_array_equal(batch.mix(batch.images), images[[1, 0]])


def test_later_only_reliable_images_are_mixed_and_their_sharpened_labels_alike(
    images, make_work
) -> None:
    beliefs = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])  # the second is not above tau = 0.5
    work = make_work(images[:3], beliefs)
    batch = soda_office_home.mixed(work, beliefs, np.arange(3), (3, 1))
    assert batch.supervised.tolist() == [True, False, True]
    share = batch.share.ravel()
    partner = batch.partner
    assert share[1] == 1
    assert (share >= 0.5).all()
    sharp = beliefs**2 / (beliefs**2).sum(axis=1, keepdims=True)  # temperature 0.5
    mixed = batch.mix(batch.images)
    for i in range(3):
        np.testing.assert_allclose(
            mixed[i], share[i] * images[i] + (1 - share[i]) * images[partner[i]], rtol=1e-5
        )
        np.testing.assert_allclose(
            batch.targets[i], share[i] * sharp[i] + (1 - share[i]) * sharp[partner[i]], rtol=1e-5
        )


def entropy(rows: np.ndarray) -> np.ndarray:
    return -(rows * np.log(rows)).sum(axis=-1)


def test_the_loss_and_its_slope_by_hand() -> None:
    rows = np.array([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4]])
    batch = MixedBatch(
        images=np.zeros((3, 3, 8, 8)),
        targets=np.array([[0.5, 0.5], [1, 0], [0, 1]]),
        supervised=np.array([True, False, False]),
        share=np.ones((3, 1, 1, 1), np.float32),
        partner=np.arange(3),
    )
    loss, slope = soda_office_home.loss(rows, batch)
    information = entropy(rows[1:].mean(axis=0)) - entropy(rows[1:]).mean()
    assert loss.cross_entropy == pytest.approx(-0.5 * np.log(0.7) - 0.5 * np.log(0.3), rel=1e-4)
    assert loss.value == pytest.approx(0.1 * loss.cross_entropy - 0.01 * information, rel=1e-3)
    for place in np.ndindex(rows.shape):
        shifted = rows.copy()
        shifted[place] += 1e-6
        change = soda_office_home.loss(shifted, batch)[0].value - loss.value
        assert slope[place] == pytest.approx(change / 1e-6, abs=1e-5)


def test_queries_are_as_planned_and_the_seed_decides_everything(box, images) -> None:
    first, again, other = (
        adapt(images, box, method="soda-office-home", seed=seed, **SMALL) for seed in (1, 1, 2)
    )
    assert first.ledger.queries == {"select": 50, "probe": 50 * (4 * 6 + 2), "evaluate": 50}
    np.testing.assert_array_equal(first.probabilities, again.probabilities)
    assert not np.array_equal(first.probabilities, other.probabilities)


def test_true_gradients_lower_the_loss(images) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 3))
    box = ModuleBox(module, logits=True)
    settings = {
        "epochs": 30,
        "warmup": 30,
        "batch": 50,
        "width": 4,
        "blocks": 0,
        "pairs": 0,
        "lr": 2.0,
    }
    run = adapt(images, box, method="soda-r-office-home", **settings)
    assert run.history[-1].loss < run.history[0].loss - 0.005
    assert run.ledger.queries["probe"] == 50 * 30


@pytest.mark.parametrize(
    "wrong",
    [
        {"memory": 2.0},
        {"temperature": 0.0},
        {"mixing": 0.0},
        {"warmup": -1},
        {"lr": 0.0},
        {"tau": 2.0},
    ],
)
def test_impossible_settings_are_refused(wrong) -> None:
    with pytest.raises(MethodError):
        soda_office_home.but(**wrong)


@pytest.mark.parametrize("method", [soda_office_home, soda_r_office_home])
def test_the_learned_adaptor_gives_the_answers_of_the_run(method, images) -> None:
    torch.manual_seed(0)
    layers = (torch.nn.Flatten(), torch.nn.Linear(images[0].size, 3))
    box = ModuleBox(torch.nn.Sequential(*layers), logits=True)
    run = adapt(images, box, method=method, **SMALL)
    np.testing.assert_allclose(box(run.adaptor(images)), run.probabilities, atol=1e-5)
    untrained = method.but(**SMALL).network().build(0)
    assert not np.array_equal(run.adaptor.parameters, untrained.parameters)
    # the same steps, and one epoch more
    longer = adapt(images, box, method=method.but(**{**SMALL, "epochs": 5}))
    assert not np.array_equal(run.adaptor.parameters, longer.adaptor.parameters)
