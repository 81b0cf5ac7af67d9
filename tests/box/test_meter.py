"""The meter: counting, the limit, and what is left while a transcript is replayed."""

import threading

import numpy as np
import pytest

from soda_tta.box import Batched, CallableBox, Ledger, Meter, Recorded
from soda_tta.errors import BudgetError
from soda_tta.storage.book import Book
from soda_tta.storage.transcript import Transcript


def blank(count: int, value: float = 0.0) -> np.ndarray:
    return np.full((count, 3, 4, 4), value, np.float32)


@pytest.fixture
def process(box, tmp_path):
    """Start a process with these files: a new meter, whose memory is empty."""

    def start(limit: int | None = 20) -> Meter:
        ledger = Ledger(limit, book=Book(tmp_path / "ledger.txt"))
        return Meter(box, ledger, Transcript(tmp_path / "asked.transcript"))

    return start


def test_queries_are_counted_by_purpose(box, model) -> None:
    meter = Meter(box, Ledger(limit=10))
    meter.asking("select")(blank(3))
    meter.asking("probe")(blank(2))
    meter.spend(1, "probe")
    assert meter.ledger.queries == {"select": 3, "probe": 3}
    assert model.asked == 5
    assert meter.limit == 10
    assert meter.left == 4


def test_a_query_beyond_the_limit_is_never_sent(box, model) -> None:
    meter = Meter(box, Ledger(limit=4))
    meter.asking("probe")(blank(3))
    with pytest.raises(BudgetError):
        meter.asking("judge")(blank(2))
    with pytest.raises(BudgetError):
        meter.spend(2, "judge")
    assert model.asked == 3
    meter.set_limit(5)
    assert meter.limit == 5
    assert meter.left == 2
    meter.asking("judge")(blank(2))
    assert meter.left == 0


def test_without_a_ledger_there_is_no_limit(box) -> None:
    meter = Meter(box)
    meter.asking("probe")(blank(30))
    assert meter.limit is None
    assert meter.left is None
    assert meter.ledger.total == 30


def test_without_a_limit_none_is_left_even_while_a_transcript_is_replayed(process) -> None:
    process(limit=None).asking("probe")(blank(3))
    assert process(limit=None).left is None


def test_only_a_meter_with_a_transcript_records(box, tmp_path) -> None:
    assert Meter(box).asking("probe").recorded is None
    path = tmp_path / "asked.transcript"
    meter = Meter(box, transcript=Transcript(path))
    assert type(meter.asking("probe").recorded) is Recorded
    meter.unrecorded().asking("probe")(blank(3))
    assert not path.exists()
    meter.asking("probe")(blank(3))
    assert path.exists()


def test_an_unrecorded_meter_shares_the_ledger(process) -> None:
    meter = process()
    unrecorded = meter.unrecorded()
    assert unrecorded.transcript is None
    assert unrecorded.box is meter.box
    unrecorded.asking("select")(blank(5))
    assert meter.left == unrecorded.left == 15
    unrecorded.recover(5, "select")
    assert meter.ledger.queries == {"select": 10}


def test_a_copy_with_another_transcript_plans_with_the_same_limit(box, tmp_path) -> None:
    meter = Meter(box, Ledger(limit=20, margin=2), aside=5)
    meter.set_limit(15)
    for other in (meter.unrecorded(), meter.recording(Transcript(tmp_path / "step.transcript"))):
        assert other.limit == meter.limit == 10
        other.set_limit(30)  # never beyond the hard limit
        assert meter.ledger.limit == 20
        meter.set_limit(15)


def test_a_replay_sees_what_was_left_when_each_response_was_recorded(process, model) -> None:
    def replay(meter: Meter) -> list[int | None]:
        left = []
        for value in (0.1, 0.5, 0.9):
            left.append(meter.left)
            meter.asking("probe")(blank(3, value))
        return left

    first = process()
    assert replay(first) == [20, 17, 14]
    first.spend(4, "probe")  # the process is killed while it waits for the responses
    second = process()
    assert second.ledger.left == 20 - 13  # what is billed, whether or not it is replayed
    assert second.has_lost_queries
    assert replay(second) == [20, 17, 14]
    assert model.asked == 9
    # The replay has ended: from here on, lost queries reduce what is left.
    assert second.ledger.lost == 4
    assert second.left == 20 - 9 - 4


def test_a_loss_is_known_from_the_first_response_after_it(process) -> None:
    first = process()
    first.asking("probe")(blank(3, 0.1))
    first.spend(4, "probe")
    second = process()
    second.asking("probe")(blank(3, 0.1))
    assert second.left == 13
    second.asking("probe")(blank(3, 0.5))
    second.spend(2, "probe")  # killed again
    third = process()
    assert third.left == 20
    third.asking("probe")(blank(3, 0.1))
    assert third.left == 13  # the second process knew of four lost queries here, not of six
    third.asking("probe")(blank(3, 0.5))
    assert third.left == 20 - 6 - 6


def test_close_records_that_nothing_more_was_asked(process) -> None:
    first = process()
    first.asking("probe")(blank(3, 0.1))
    decided = first.left
    first.close()
    first.unrecorded().asking("evaluate")(blank(5))  # killed before it is stored
    second = process()
    second.asking("probe")(blank(3, 0.1))
    assert second.left == decided == 17  # what was lost later was not lost then
    second.close()
    assert second.left == 12


def test_a_meter_without_a_transcript_can_be_closed(box) -> None:
    Meter(box).close()


def test_recovered_queries_are_not_lost(process) -> None:
    process().unrecorded().asking("select")(blank(6))
    second = process()
    assert second.has_lost_queries
    second.recover(6, "select")
    assert not second.has_lost_queries
    assert second.ledger.by_purpose() == {"select": 6}
    assert second.left == 14


def test_pieces_for_several_purposes_share_the_workers(tmp_path) -> None:
    """The last request of one piece and the first of the next, for another purpose, overlap."""
    overlapping = threading.Barrier(2)
    asked: list[float] = []

    def model(images: np.ndarray) -> np.ndarray:
        value = round(float(images[0, 0, 0, 0]), 1)
        asked.append(value)
        if value in (0.3, 0.4):
            overlapping.wait(5)  # breaks unless both are in flight at once
        return np.tile([value, 1 - value], (len(images), 1))

    def pieces():
        yield "evaluate", np.concatenate([blank(1, 0.1), blank(1, 0.2), blank(1, 0.3)])
        yield "judge", np.concatenate([blank(1, 0.4), blank(1, 0.5)])
        yield "evaluate", blank(1, 0.6)

    def one_process() -> list[np.ndarray]:
        ledger = Ledger(20, book=Book(tmp_path / "ledger.txt"))
        box = Batched(CallableBox(model), batch=1, workers=2)
        meter = Meter(box, ledger, Transcript(tmp_path / "asked.transcript"))
        rows = list(meter.each(pieces(), "evaluate", "judge"))
        assert ledger.queries == {"evaluate": 4, "judge": 2}
        assert ledger.wasted == 0
        return rows

    rows = one_process()
    values = [np.round(10 * each[:, 0]).tolist() for each in rows]
    assert values == [[1, 2, 3], [4, 5], [6]]
    assert sorted(asked) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    again = one_process()  # replays what was recorded
    assert len(asked) == 6
    assert all(map(np.array_equal, rows, again))
