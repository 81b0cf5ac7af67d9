"""The last pass: what is known is not asked again, and what a budget no longer reaches for is told."""

import numpy as np
import pytest

from soda_tta.adaptors import Identity
from soda_tta.box import CallableBox, Ledger, Metered
from soda_tta.data import open_images
from soda_tta.engine.events import Notice
from soda_tta.engine.passes import UNREACHED, answer_all


@pytest.mark.parametrize("left", [0, 3, 9])
def test_what_is_left_of_a_budget_goes_to_as_many_images_as_it_reaches_for(left: int) -> None:
    images = np.random.default_rng(0).random((20, 3, 4, 4), np.float32)
    asked = []

    def model(batch):
        asked.append(len(batch))
        return np.tile(np.float32([0.9, 0.1]), (len(batch), 1))

    before = np.tile(np.float32([0.5, 0.5]), (20, 1))
    known = np.full((20, 2), np.nan, np.float32)
    known[10:] = [0.2, 0.8]  # ten are paid already, and lie behind those that are not
    ledger, notices = Ledger(left), []
    box = Metered(CallableBox(model), ledger, "evaluate")
    rows = answer_all(
        open_images(images),
        Identity(),
        box,
        None,
        lambda: False,
        notices.append,
        otherwise=before,
        known=known,
    )
    assert sum(asked) == left == ledger.total
    np.testing.assert_allclose(rows[:left], np.tile([0.9, 0.1], (left, 1)))
    np.testing.assert_allclose(rows[left:10], before[left:10])
    np.testing.assert_allclose(rows[10:], known[10:])
    assert [event.text for event in notices if isinstance(event, Notice)] == [
        f"{10 - left} images {UNREACHED}"
    ]


def test_what_the_end_of_a_budget_paid_for_outlives_a_kill(tmp_path) -> None:
    images, before = np.zeros((20, 3, 4, 4), np.float32), np.tile(np.float32([0.5, 0.5]), (20, 1))
    model = CallableBox(lambda batch: np.tile(np.float32([0.9, 0.1]), (len(batch), 1)), batch=7)

    def rows(limit: int, tell) -> tuple[np.ndarray, Ledger]:
        ledger = Ledger(limit)
        box = Metered(model, ledger, "evaluate")
        return answer_all(
            open_images(images), Identity(), box, tmp_path / "a", lambda: False, tell, before
        ), ledger

    def killed(event) -> None:
        if isinstance(event, Notice):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rows(12, killed)
    again, ledger = rows(12, lambda event: None)
    assert ledger.total == 12 and (again[:12, 0] > 0.8).all() and (again[12:] == 0.5).all()
