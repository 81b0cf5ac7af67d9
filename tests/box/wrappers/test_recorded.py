import numpy as np
import pytest

from soda_tta.box import CallableBox, Ledger, Metered, Recorded, Transcript, left_to_spend
from soda_tta.box.wrappers.recorded import HEADER
from soda_tta.errors import BudgetError


def some_images(seed: int, count: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 3, 4, 4), dtype=np.float32)


class Process:
    """A process that may be killed: what it holds is lost, what it wrote stays."""

    def __init__(self, folder, model, limit: int | None = None) -> None:
        self.ledger = Ledger(limit, folder / "ledger.txt")
        self.transcript = Transcript(folder / "transcript")
        self.model = model

    def ask(self, seed: int, purpose: str = "probe") -> np.ndarray:
        return Recorded(Metered(CallableBox(self.model), self.ledger, purpose), self.transcript)(
            some_images(seed)
        )


ENTRY = HEADER.size + 4 * 3 * 4  # of three images and four classes


def test_a_process_that_starts_anew_is_told_again_what_was_paid(model, tmp_path) -> None:
    first = Process(tmp_path, model)
    told = [
        first.ask(seed, purpose) for seed, purpose in ((1, "probe"), (2, "judge"), (3, "probe"))
    ]
    asked = model.asked
    second = Process(tmp_path, model)
    assert second.ledger.lost == 9 and second.ledger.total == 9
    again = [
        second.ask(seed, purpose) for seed, purpose in ((1, "probe"), (2, "judge"), (3, "probe"))
    ]
    np.testing.assert_array_equal(again, told)
    assert model.asked == asked  # nothing was asked
    assert (
        second.ledger.queries == first.ledger.queries == {"probe": 6, "judge": 3}
        and second.ledger.lost == 0
    )
    second.ask(4)
    assert model.asked == asked + 3 and second.ledger.total == 12
    third = Process(tmp_path, model)
    for seed in (1, 2, 3, 4):
        third.ask(seed)
    assert model.asked == asked + 3 and third.ledger.lost == 0


@pytest.mark.parametrize("left", [1, HEADER.size - 1, HEADER.size, HEADER.size + 7, ENTRY - 1])
def test_a_torn_tail_is_asked_again_and_owned_up_to(model, tmp_path, left: int) -> None:
    first = Process(tmp_path, model)
    told = [first.ask(seed) for seed in (1, 2)]
    path = tmp_path / "transcript"
    path.write_bytes(path.read_bytes()[: ENTRY + left])
    second = Process(tmp_path, model)
    np.testing.assert_array_equal([second.ask(1), second.ask(2), second.ask(3)][:2], told)
    assert model.asked == 6 + 6  # the first was kept; the second was paid twice
    assert (
        second.ledger.queries == {"probe": 9}
        and second.ledger.lost == 3
        and second.ledger.total == model.asked
    )
    assert path.stat().st_size == 3 * ENTRY
    third = Process(tmp_path, model)
    for seed in (1, 2, 3):
        third.ask(seed)
    assert model.asked == 12 and third.ledger.lost == 3


def test_what_was_written_for_other_questions_is_dropped(model, tmp_path) -> None:
    first = Process(tmp_path, model)
    for seed in (1, 2, 3):
        first.ask(seed)
    second = Process(tmp_path, model)
    second.ask(1)
    new = second.ask(9)  # here it goes another way
    assert model.asked == 12 and second.ledger.lost == 6
    second.ask(
        2
    )  # asked before, but not after this question: it is asked again rather than searched for
    assert model.asked == 15 and second.ledger.total == 15
    third = Process(tmp_path, model)
    third.ask(1)
    np.testing.assert_array_equal(third.ask(9), new)
    third.ask(2)
    assert model.asked == 15 and third.ledger.queries == {"probe": 9} and third.ledger.lost == 6


def test_a_question_that_failed_is_not_written_down(model, tmp_path) -> None:
    def failing(images):
        raise OSError("gone")

    first = Process(tmp_path, model)
    first.ask(1)
    first.model = failing
    with pytest.raises(Exception, match="gone"):
        first.ask(2)
    second = Process(tmp_path, model)
    second.ask(1)
    second.ask(2)
    assert (
        model.asked == 6 and second.ledger.lost == 3
    )  # the request that failed may have been charged


def test_the_limit_holds_over_kills(model, tmp_path) -> None:
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


def test_what_is_left_is_told_as_it_was_when_it_was_first_decided_by(model, tmp_path) -> None:
    def decide(process: Process) -> int | None:
        return left_to_spend(process.ledger, process.transcript)

    first = Process(tmp_path, model, limit=30)
    seen = [decide(first), first.ask(1), decide(first), first.ask(2)][::2]
    first.ledger.spend(5, "probe")  # asked, and never answered
    second = Process(tmp_path, model, limit=30)
    assert [decide(second), second.ask(1), decide(second), second.ask(2)][::2] == seen == [30, 27]
    assert decide(second) == 19 and second.ledger.lost == 5
    second.ask(3)
    last = decide(second)
    second.transcript.end(second.ledger.lost)
    second.ledger.spend(3, "evaluate")
    third = Process(tmp_path, model, limit=30)
    assert [decide(third), third.ask(1), decide(third), third.ask(2)][::2] == seen
    assert decide(third) == 19  # what the first lost was known here
    third.ask(3)
    assert decide(third) == last == 16  # and what came after the end was not
    third.transcript.end(third.ledger.lost)
    assert decide(third) == 13
    assert (tmp_path / "transcript").stat().st_size == 3 * ENTRY + HEADER.size  # it is written once


def test_it_remains_the_box_it_wraps(box, tmp_path) -> None:
    recorded = Recorded(Metered(box, Ledger(), "probe"), Transcript(tmp_path / "t"))
    assert recorded.fingerprint() == box.fingerprint() and recorded.input == box.input
    recorded(some_images(0))
    assert recorded.classes == 4
    assert recorded(some_images(0, count=0)).shape[0] == 0
