"""The time of a run that several processes took."""

from soda_tta.errors import StorageError
from soda_tta.storage import stopwatch as clock
from soda_tta.storage.stopwatch import Stopwatch


def test_a_second_process_goes_on_from_what_the_first_has_noted(tmp_path, monkeypatch) -> None:
    now = [100.0]
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])
    first = Stopwatch()
    first.keep(tmp_path / "seconds.txt")
    now[0] += 7
    first.tick()
    now[0] += 0.5
    first.tick()  # so soon again: not noted
    second = Stopwatch()
    second.keep(tmp_path / "seconds.txt")
    now[0] += 2
    assert second.seconds == 9 and first.seconds == 9.5


def test_a_time_that_cannot_be_written_leaves_the_last_one(tmp_path, monkeypatch) -> None:
    (tmp_path / "seconds.txt").write_text("5000")
    full = Stopwatch()
    full.keep(tmp_path / "seconds.txt")

    def refuse(path, text) -> None:
        raise StorageError("no room")

    monkeypatch.setattr(clock, "write_text", refuse)
    full.note()
    assert (tmp_path / "seconds.txt").read_text() == "5000"


def test_a_clock_without_a_file_or_with_a_torn_one_begins_at_nothing(tmp_path) -> None:
    (tmp_path / "seconds.txt").write_text("")
    torn, free = Stopwatch(), Stopwatch()
    torn.keep(tmp_path / "seconds.txt")
    free.tick()
    assert 0 <= torn.seconds < 60 and 0 <= free.seconds < 60
