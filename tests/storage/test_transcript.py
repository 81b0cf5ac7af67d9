"""A transcript replays the recorded responses, by query and image."""

import numpy as np
import pytest

from soda_tta.storage.records import HEADER as LENGTHS
from soda_tta.storage.transcript import DIGEST_BYTES, HEADER, Transcript

DIGESTS = [bytes([number]) * 16 for number in range(1, 7)]
ROWS = np.random.default_rng(0).random((6, 3)).astype(np.float32)
# query, queries without a response when it was decided on, images of the request
REQUESTS = [(1, 0, slice(2, 4)), (1, 0, slice(0, 2)), (2, 5, slice(4, 6))]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "asked.transcript"
    transcript = Transcript(path)
    for query, wasted, place in REQUESTS:
        transcript.append(query, wasted, DIGESTS[place], ROWS[place])
    return path


def test_responses_are_replayed_whatever_the_order_and_size_of_requests(path) -> None:
    transcript = Transcript(path)
    assert transcript.begin() == 1
    np.testing.assert_array_equal(transcript.take(1, DIGESTS[:3]), ROWS[:3])
    assert transcript.take(1, DIGESTS[:1]) == [None]  # once each
    rows = transcript.take(1, DIGESTS[3:5])
    np.testing.assert_array_equal(rows[0], ROWS[3])
    assert rows[1] is None  # it belongs to the next query
    assert transcript.begin() == 2
    np.testing.assert_array_equal(transcript.take(2, DIGESTS[4:]), ROWS[4:])
    assert not transcript.holds(transcript.begin())


def test_the_same_image_twice_in_a_query_has_two_responses(tmp_path) -> None:
    path = tmp_path / "asked.transcript"
    Transcript(path).append(1, 0, [DIGESTS[0]] * 2, ROWS[:2])
    np.testing.assert_array_equal(Transcript(path).take(1, [DIGESTS[0]] * 2), ROWS[:2])


def test_a_transcript_cut_off_anywhere_replays_its_complete_requests(path) -> None:
    data = path.read_bytes()
    entry = LENGTHS.size + HEADER.size + 2 * (DIGEST_BYTES + 4 * 3)
    assert len(data) == 3 * entry
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        transcript = Transcript(path)
        for number, (query, wasted, place) in enumerate(REQUESTS):
            recorded = transcript.take(query, DIGESTS[place])
            assert (recorded[0] is not None) == (size >= (number + 1) * entry)
            if recorded[0] is None:
                transcript.append(query, wasted, DIGESTS[place], ROWS[place])
        assert path.read_bytes() == data


def test_wasted_queries_are_those_known_when_the_next_query_was_decided_on(path) -> None:
    transcript = Transcript(path)
    for expected in (0, 5, 9):
        assert transcript.wasted_then(9) == expected
        transcript.begin()
    assert Transcript(path.with_name("absent")).wasted_then(9) == 9


def test_the_end_is_recorded_once(path) -> None:
    size = path.stat().st_size
    for _ in range(2):
        transcript = Transcript(path)
        transcript.begin()
        transcript.begin()
        transcript.end(6)
        assert path.stat().st_size == size + LENGTHS.size + HEADER.size
        assert transcript.wasted_then(9) == 9
    transcript = Transcript(path)
    transcript.begin()
    transcript.begin()
    assert transcript.wasted_then(9) == 6  # known when the last query had been asked


def test_a_cleared_transcript_begins_again(path) -> None:
    transcript = Transcript(path)
    transcript.begin()
    transcript.clear()
    assert path.stat().st_size == 0
    assert transcript.begin() == 1
    assert not transcript.holds(1)
    transcript.append(1, 0, DIGESTS[:1], ROWS[:1])
    np.testing.assert_array_equal(Transcript(path).take(1, DIGESTS[:1]), ROWS[:1])
