"""The final pass: known rows are not asked for again, and unreached images are reported."""

import numpy as np
import pytest

from soda_tta.adaptors import Identity
from soda_tta.box import CallableBox, Ledger, Meter
from soda_tta.data import open_images
from soda_tta.engine.events import Answered, Notice
from soda_tta.engine.passes import UNREACHED, Pass
from soda_tta.engine.work import Interrupted
from soda_tta.storage.answers import AnswerFile


@pytest.mark.parametrize("left", [0, 3, 9])
def test_the_rest_of_a_budget_goes_to_as_many_images_as_it_covers(left: int) -> None:
    images = np.random.default_rng(0).random((20, 3, 4, 4), np.float32)
    sizes = []

    def model(batch):
        sizes.append(len(batch))
        return np.tile(np.float32([0.9, 0.1]), (len(batch), 1))

    before = np.tile(np.float32([0.5, 0.5]), (20, 1))
    known = np.full((20, 2), np.nan, np.float32)
    known[10:] = [0.2, 0.8]  # ten are billed already, and come after those that are not
    ledger = Ledger(left)
    events = []
    last = Pass(
        open_images(images),
        Identity(),
        Meter(CallableBox(model), ledger),
        "evaluate",
        AnswerFile(None),
        listener=events.append,
        fallback=before,
        known=known,
    )
    rows = last.run()
    assert sum(sizes) == left == ledger.total
    np.testing.assert_allclose(rows[:left], np.tile([0.9, 0.1], (left, 1)))
    np.testing.assert_allclose(rows[left:10], before[left:10])
    np.testing.assert_allclose(rows[10:], known[10:])
    assert last.unreached == 10 - left
    texts = [event.text for event in events if isinstance(event, Notice)]
    assert texts == [f"{10 - left} {UNREACHED}"]


def test_responses_billed_at_the_end_of_a_budget_survive_a_kill(tmp_path) -> None:
    images = np.zeros((20, 3, 4, 4), np.float32)
    before = np.tile(np.float32([0.5, 0.5]), (20, 1))
    box = CallableBox(lambda batch: np.tile(np.float32([0.9, 0.1]), (len(batch), 1)), batch=7)

    def answer(limit: int, listener) -> tuple[np.ndarray, Ledger]:
        ledger = Ledger(limit)
        last = Pass(
            open_images(images),
            Identity(),
            Meter(box, ledger),
            "evaluate",
            AnswerFile(tmp_path / "evaluate.answers"),
            listener=listener,
            fallback=before,
        )
        return last.run(), ledger

    def kill_at_the_notice(event) -> None:
        if isinstance(event, Notice):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer(12, kill_at_the_notice)
    rows, ledger = answer(12, lambda event: None)
    assert ledger.total == 12
    assert (rows[:12, 0] > 0.8).all()
    assert (rows[12:] == 0.5).all()


def test_a_stopped_pass_holds_its_rows_so_far_and_continues_after_them(tmp_path) -> None:
    images = np.random.default_rng(0).random((20, 3, 4, 4), np.float32)
    sizes = []

    def model(batch):
        sizes.append(len(batch))
        share = batch.mean(axis=(1, 2, 3))
        return np.stack([share, 1 - share], axis=1)

    def make(stop) -> tuple[Pass, list]:
        events: list = []
        made = Pass(
            open_images(images),
            Identity(),
            Meter(CallableBox(model, batch=6)),
            "serve",
            AnswerFile(tmp_path / "serve.answers"),
            listener=events.append,
            stop=stop,
        )
        return made, events

    stopped, events = make(lambda: stopped.done >= 12)
    with pytest.raises(Interrupted):
        stopped.run()
    assert events == [Answered("serve", 6, 20), Answered("serve", 12, 20)]
    rows = stopped.so_far()
    assert rows.shape == (20, 2)
    assert np.isfinite(rows[:12]).all()
    assert np.isnan(rows[12:]).all()
    resumed, _ = make(lambda: False)
    complete = resumed.run()
    assert sum(sizes) == 20
    np.testing.assert_array_equal(complete[:12], rows[:12])
    assert np.isfinite(complete).all()
