"""A recorded box: a process that resumes gets the responses that were billed already."""

import numpy as np
import pytest

from soda_tta.box import Batched, CallableBox, Ledger, Meter
from soda_tta.errors import BoxError, BudgetError
from soda_tta.storage.book import Book
from soda_tta.storage.records import HEADER as LENGTHS
from soda_tta.storage.transcript import DIGEST_BYTES, HEADER, Transcript

HEAD = LENGTHS.size + HEADER.size
ENTRY = HEAD + 3 * DIGEST_BYTES + 4 * 3 * 4  # bytes of a response to 3 images with 4 classes


def some_images(seed: int, count: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 3, 4, 4), dtype=np.float32)


class Process:
    """A process that may be killed: its memory is gone, its files remain."""

    def __init__(self, folder, model, limit: int | None = None) -> None:
        self.ledger = Ledger(limit, book=Book(folder / "ledger.txt"))
        self.transcript = Transcript(folder / "transcript")
        self.model = model

    def ask(self, seed: int, purpose: str = "probe") -> np.ndarray:
        return self.meter.asking(purpose)(some_images(seed))

    @property
    def meter(self) -> Meter:
        return Meter(CallableBox(self.model), self.ledger, self.transcript)

    @property
    def left(self) -> int | None:
        return self.meter.left


def test_a_resumed_process_gets_the_recorded_responses(model, tmp_path) -> None:
    queries = ((1, "probe"), (2, "judge"), (3, "probe"))
    first = Process(tmp_path, model)
    responses = [first.ask(seed, purpose) for seed, purpose in queries]
    asked = model.asked
    second = Process(tmp_path, model)
    assert second.ledger.lost == 9
    assert second.ledger.total == 9
    replayed = [second.ask(seed, purpose) for seed, purpose in queries]
    np.testing.assert_array_equal(replayed, responses)
    assert model.asked == asked  # the model was not queried
    assert second.ledger.queries == first.ledger.queries == {"probe": 6, "judge": 3}
    assert second.ledger.lost == 0
    second.ask(4)
    assert model.asked == asked + 3
    assert second.ledger.total == 12
    third = Process(tmp_path, model)
    for seed in (1, 2, 3, 4):
        third.ask(seed)
    assert model.asked == asked + 3
    assert third.ledger.lost == 0


@pytest.mark.parametrize("left", [1, HEAD - 1, HEAD, HEAD + 7, ENTRY - 1])
def test_a_response_cut_off_by_a_crash_is_queried_again_and_counted_as_lost(
    model, tmp_path, left: int
) -> None:
    first = Process(tmp_path, model)
    responses = [first.ask(seed) for seed in (1, 2)]
    path = tmp_path / "transcript"
    path.write_bytes(path.read_bytes()[: ENTRY + left])
    second = Process(tmp_path, model)
    np.testing.assert_array_equal([second.ask(1), second.ask(2), second.ask(3)][:2], responses)
    assert model.asked == 6 + 6  # the first response was replayed; the second was billed twice
    assert second.ledger.queries == {"probe": 9}
    assert second.ledger.lost == 3
    assert second.ledger.total == model.asked
    assert path.stat().st_size == 3 * ENTRY
    third = Process(tmp_path, model)
    for seed in (1, 2, 3):
        third.ask(seed)
    assert model.asked == 12
    assert third.ledger.lost == 3


def test_responses_to_other_queries_are_not_used(model, tmp_path) -> None:
    first = Process(tmp_path, model)
    for seed in (1, 2, 3):
        first.ask(seed)
    second = Process(tmp_path, model)
    second.ask(1)
    response = second.ask(9)  # here the second process departs from the first
    assert model.asked == 12
    assert second.ledger.lost == 6
    second.ask(2)  # recorded as the second query, and now the third
    assert model.asked == 15
    assert second.ledger.total == 15
    third = Process(tmp_path, model)
    third.ask(1)
    np.testing.assert_array_equal(third.ask(9), response)
    third.ask(2)
    assert model.asked == 15
    assert third.ledger.queries == {"probe": 9}
    assert third.ledger.lost == 6


@pytest.mark.parametrize("batch", [2, 3, 7])
@pytest.mark.parametrize("workers", [1, 3])
def test_every_request_is_recorded_when_it_is_answered(
    model, tmp_path, batch: int, workers: int
) -> None:
    images = some_images(0, count=10)
    broken = images[4]  # the third request fails, whenever it comes

    def ask(fails: bool, batch: int) -> Meter:
        def unreliable(request):
            if fails and (request == broken).all(axis=(1, 2, 3)).any():
                raise OSError("connection closed")
            return model(request)

        ledger = Ledger(book=Book(tmp_path / "ledger.txt"))
        box = Batched(CallableBox(unreliable, batch=2), batch=batch, workers=workers)
        meter = Meter(box, ledger, Transcript(tmp_path / "transcript"))
        np.testing.assert_allclose(meter.asking("probe")(images), model(images), atol=1e-6)
        model.asked -= 10
        return meter

    with pytest.raises(BoxError, match="connection closed"):
        ask(fails=True, batch=2)
    answered = model.asked
    assert answered >= 4 if workers == 1 else answered >= 0
    resumed = ask(fails=False, batch=batch)  # also if requests have another size now
    assert model.asked == 10  # none twice
    assert resumed.ledger.queries == {"probe": 10}
    assert resumed.ledger.lost <= 2 * workers


def test_a_failed_query_is_not_recorded_but_counts_as_lost(model, tmp_path) -> None:
    def failing(images):
        raise OSError("connection closed")

    first = Process(tmp_path, model)
    first.ask(1)
    first.model = failing
    with pytest.raises(BoxError, match="connection closed"):
        first.ask(2)
    second = Process(tmp_path, model)
    second.ask(1)
    second.ask(2)
    assert model.asked == 6
    assert second.ledger.lost == 3  # the failed request may have been billed


def test_the_limit_holds_across_crashes(model, tmp_path) -> None:
    first = Process(tmp_path, model, limit=9)
    first.ask(1)
    first.ask(2)
    path = tmp_path / "transcript"
    path.write_bytes(path.read_bytes()[:-1])
    second = Process(tmp_path, model, limit=9)
    second.ask(1)
    second.ask(2)
    with pytest.raises(BudgetError):
        second.ask(3)
    assert model.asked == 9


def test_what_is_left_during_a_replay_is_what_the_first_process_had_left(model, tmp_path) -> None:
    def replay(process: Process) -> list[int | None]:
        left = []
        for seed in (1, 2):
            left.append(process.left)
            process.ask(seed)
        return left

    first = Process(tmp_path, model, limit=30)
    assert replay(first) == [30, 27]
    first.ledger.spend(5, "probe")  # sent, and no response arrived
    second = Process(tmp_path, model, limit=30)
    assert replay(second) == [30, 27]
    assert second.left == 19
    assert second.ledger.lost == 5
    second.ask(3)
    assert second.left == 16
    second.transcript.end(second.ledger.lost)
    second.ledger.spend(3, "evaluate")
    third = Process(tmp_path, model, limit=30)
    assert replay(third) == [30, 27]
    assert third.left == 19  # what the first process lost was known here
    third.ask(3)
    assert third.left == 16  # what was lost after the end was not
    third.transcript.end(third.ledger.lost)
    assert third.left == 13
    assert (tmp_path / "transcript").stat().st_size == 3 * ENTRY + HEAD  # one end only


def test_a_recorded_box_has_the_facts_of_the_box_it_wraps(box, tmp_path) -> None:
    recorded = Meter(box, Ledger(), Transcript(tmp_path / "transcript")).asking("probe")
    assert recorded.fingerprint() == box.fingerprint()
    assert recorded.input == box.input
    recorded(some_images(0))
    assert recorded.classes == 4
    assert recorded(some_images(0, count=0)).shape[0] == 0
