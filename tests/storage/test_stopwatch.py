"""The stopwatch counts seconds over all the processes of a run."""

from soda_tta.errors import StorageError
from soda_tta.storage import stopwatch
from soda_tta.storage.stopwatch import Stopwatch


def test_a_second_process_continues_from_the_time_of_the_first(tmp_path, monkeypatch) -> None:
    now = [100.0]
    monkeypatch.setattr(stopwatch.time, "perf_counter", lambda: now[0])
    first = Stopwatch()
    first.keep(tmp_path / "seconds.txt")
    now[0] += 7
    first.tick()
    now[0] += 0.5
    first.tick()  # less than a second later: not written
    second = Stopwatch()
    second.keep(tmp_path / "seconds.txt")
    now[0] += 2
    assert second.seconds == 9
    assert first.seconds == 9.5


def test_a_time_that_cannot_be_written_keeps_the_previous_one(tmp_path, monkeypatch) -> None:
    (tmp_path / "seconds.txt").write_text("5000")
    watch = Stopwatch()
    watch.keep(tmp_path / "seconds.txt")

    def refuse(path, text) -> None:
        raise StorageError("No space left on device")

    monkeypatch.setattr(stopwatch, "write_text", refuse)
    watch.note()
    assert (tmp_path / "seconds.txt").read_text() == "5000"


def test_a_stopwatch_starts_at_zero_without_a_file_or_with_an_empty_one(tmp_path) -> None:
    (tmp_path / "seconds.txt").write_text("")
    with_empty_file = Stopwatch()
    with_empty_file.keep(tmp_path / "seconds.txt")
    assert 0 <= with_empty_file.seconds < 60
    without_file = Stopwatch()
    without_file.tick()
    assert 0 <= without_file.seconds < 60
