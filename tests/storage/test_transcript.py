"""A transcript replays the recorded responses in order, and drops what does not fit."""

import numpy as np
import pytest

from soda_tta.storage.transcript import HEADER, Transcript

DIGESTS = [bytes([number]) * 16 for number in range(1, 5)]
RESPONSES = [
    np.random.default_rng(number).random((number + 1, 3)).astype(np.float32) for number in range(3)
]
LOST = [0, 5, 5]  # queries known to be lost when each response was received


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "asked.transcript"
    transcript = Transcript(path)
    for digest, lost, response in zip(DIGESTS, LOST, RESPONSES, strict=False):
        assert transcript.next(digest) is None
        transcript.append(digest, lost, response)
    return path


def ends(path) -> list[int]:
    """Where each recorded response ends, in bytes."""
    return np.cumsum([HEADER.size + response.nbytes for response in RESPONSES]).tolist()


def test_responses_are_replayed_in_order(path) -> None:
    transcript = Transcript(path)
    for digest, response in zip(DIGESTS, RESPONSES, strict=False):
        replayed = transcript.next(digest)
        np.testing.assert_array_equal(replayed, response)
        assert replayed.dtype == np.float32
        assert replayed.flags.writeable
    assert transcript.next(DIGESTS[3]) is None
    assert path.stat().st_size == ends(path)[-1]


def test_another_query_is_not_replayed_and_does_not_advance(path) -> None:
    transcript = Transcript(path)
    assert transcript.next(DIGESTS[1]) is None
    np.testing.assert_array_equal(transcript.next(DIGESTS[0]), RESPONSES[0])
    assert transcript.next(DIGESTS[2]) is None
    np.testing.assert_array_equal(transcript.next(DIGESTS[1]), RESPONSES[1])


def test_a_new_response_replaces_the_recording_from_its_place_on(path) -> None:
    transcript = Transcript(path)
    transcript.next(DIGESTS[0])
    transcript.append(DIGESTS[3], 7, RESPONSES[2])
    assert transcript.next(DIGESTS[1]) is None  # nothing is left to replay
    resumed = Transcript(path)
    np.testing.assert_array_equal(resumed.next(DIGESTS[0]), RESPONSES[0])
    np.testing.assert_array_equal(resumed.next(DIGESTS[3]), RESPONSES[2])
    assert resumed.next(DIGESTS[1]) is None


def test_a_transcript_cut_off_anywhere_replays_its_complete_responses(path) -> None:
    data = path.read_bytes()
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        complete = sum(size >= end for end in ends(path))
        transcript = Transcript(path)
        for number in range(3):
            response = transcript.next(DIGESTS[number])
            assert (response is not None) == (number < complete)
            if response is None:
                transcript.append(DIGESTS[number], LOST[number], RESPONSES[number])
        assert path.read_bytes() == data


def test_lost_queries_are_those_known_when_the_next_response_was_received(path) -> None:
    transcript = Transcript(path)
    for digest, lost in zip(DIGESTS, LOST, strict=False):
        assert transcript.lost_then(9) == lost
        transcript.next(digest)
    assert transcript.lost_then(9) == 9
    assert Transcript(path.with_name("absent")).lost_then(9) == 9


def test_the_end_is_recorded_once(path) -> None:
    for _ in range(2):
        transcript = Transcript(path)
        for digest in DIGESTS[:3]:
            transcript.next(digest)
        transcript.end(6)
        assert path.stat().st_size == ends(path)[-1] + HEADER.size
        assert transcript.lost_then(9) == 9
    transcript = Transcript(path)
    for digest in DIGESTS[:3]:
        transcript.next(digest)
    assert transcript.lost_then(9) == 6  # known when the last query had been asked
    assert transcript.next(DIGESTS[3]) is None


def test_an_end_before_the_recording_is_over_drops_the_rest(path) -> None:
    transcript = Transcript(path)
    transcript.next(DIGESTS[0])
    transcript.end(2)
    assert path.stat().st_size == ends(path)[0] + HEADER.size
