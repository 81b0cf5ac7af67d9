import numpy as np
import pytest
import torch

from soda_tta.objectives.tempering import tempered


def test_exponent_one_changes_nothing_and_a_small_exponent_evens_out() -> None:
    rows = np.array([[0.7, 0.2, 0.1]])
    assert tempered(rows, 1) == pytest.approx(rows)
    assert tempered(rows, 0.01)[0] == pytest.approx([1 / 3] * 3, abs=0.01)


def test_exponent_two_squares() -> None:
    rows = np.array([[0.8, 0.2]])
    expected = [[0.64 / 0.68, 0.04 / 0.68]]
    np.testing.assert_allclose(tempered(rows, 2.0), expected)
    tensor = tempered(torch.from_numpy(rows), 2.0)
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_allclose(tensor.numpy(), expected)


def test_rows_sum_to_one_and_keep_their_order() -> None:
    rows = np.random.default_rng(0).dirichlet(np.full(6, 0.3), 40) + 1e-12
    for exponent in (0.05, 0.8, 3.0, 20.0):
        result = tempered(rows, exponent)
        np.testing.assert_allclose(result.sum(axis=1), 1)
        np.testing.assert_array_equal(result.argsort(axis=1), rows.argsort(axis=1))
