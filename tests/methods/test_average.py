"""The setting `average`: the mean of the probabilities before and after, from the same queries."""

import warnings

import numpy as np
import pytest

from soda_tta import adapt

DATA_METHODS = ["soda", "da-pl", "da-direct", "da-pgd", "da-zoo-input", "soda-o"]


@pytest.mark.parametrize("name", DATA_METHODS)
def test_the_answer_is_the_mean_and_costs_no_query(name: str, box, images) -> None:
    settings = {"epochs": 2, "lr": 0.1, **({} if name == "da-pgd" else {"width": 4})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = adapt(images, box, method=name, **settings)
        averaged = adapt(images, box, method=name, average=True, **settings)
    assert not np.array_equal(plain.after, plain.before)
    np.testing.assert_allclose(averaged.after, (plain.before + plain.after) / 2, rtol=1e-6)
    assert averaged.ledger.queries == plain.ledger.queries
    assert averaged.card.settings["average"] is True


def test_if_nothing_was_learned_the_mean_is_the_models_own_answer(box, images) -> None:
    run = adapt(images, box, method="soda", budget=1, average=True)
    np.testing.assert_array_equal(run.probabilities, run.before)
