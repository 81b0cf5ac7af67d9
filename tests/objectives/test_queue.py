"""The queue of confident images that SODA-O keeps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.errors import MethodError
from soda_tta.objectives.queue import Queue


def rows(*confidences: tuple[int, float]) -> np.ndarray:
    """Two classes; each pair is (class, confidence)."""
    return np.array([[c, 1 - c] if label == 0 else [1 - c, c] for label, c in confidences])


def numbered(*values: float) -> np.ndarray:
    """Images of one pixel whose value identifies them."""
    return np.repeat(np.array(values, np.float32).reshape(-1, 1, 1, 1), 3, axis=1)


def contents(queue: Queue) -> list[float]:
    return queue.images[:, 0, 0, 0].tolist()


def test_the_queue_by_hand() -> None:
    # size 4, 2 classes: two of each, above 0.8; the least confident are dropped first
    queue = Queue(size=4).push(
        numbered(1, 2, 3, 4), rows((0, 0.9), (0, 0.95), (1, 0.7), (1, 0.85)), tau=0.8
    )
    assert contents(queue) == [1, 2, 4]
    assert queue.labels.tolist() == [0, 0, 1]
    queue = queue.push(numbered(5, 6), rows((0, 0.92), (0, 0.81)), tau=0.8)
    assert contents(queue) == [2, 4, 5]
    assert queue.labels.tolist() == [0, 1, 0]
    assert queue.confidences.tolist() == [0.95, 0.85, 0.92]
    assert queue.taken.tolist() == [True, False]


def test_confidence_must_exceed_tau_and_among_equals_the_oldest_is_dropped() -> None:
    assert not len(Queue(size=4).push(numbered(1), rows((0, 0.75)), tau=0.75))
    queue = Queue(size=2).push(numbered(1, 2), rows((0, 1.0), (0, 1.0)), tau=0.8)
    assert contents(queue) == [2]
    assert contents(queue.push(numbered(3), rows((0, 1.0)), tau=0.8)) == [3]


def test_a_push_does_not_change_the_queue_it_started_from() -> None:
    first = Queue(size=4).push(numbered(1), rows((0, 0.9)), tau=0.8)
    first.push(numbered(2), rows((0, 0.99)), tau=0.8)
    assert contents(first) == [1]


def test_impossible_sizes_are_refused_and_0_means_no_queue() -> None:
    with pytest.raises(MethodError, match="no place for each of 3 classes"):
        Queue(size=2).push(numbered(1), np.array([[0.9, 0.05, 0.05]]), tau=0.5)
    with pytest.raises(MethodError):
        Queue(size=-1)
    assert not len(Queue(size=0).push(numbered(1), rows((0, 0.9)), tau=0.5))


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=6),
    st.integers(2, 5),
    st.integers(0, 12),
    st.sampled_from([0.0, 0.5, 0.8]),
    st.integers(0, 99),
)
def test_the_queue_is_balanced_and_bounded_and_holds_the_most_confident_images(
    batches: list[int], classes: int, spare: int, tau: float, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    size = classes + spare
    queue = Queue(size)
    all_images = np.zeros((0, 3, 1, 1), np.float32)
    all_rows = np.zeros((0, classes))
    for count in batches:
        probabilities = generator.dirichlet(np.full(classes, 0.3), count).round(2)  # rounded: ties
        images = numbered(*np.arange(len(all_images), len(all_images) + count))
        queue = queue.push(images, probabilities, tau)
        all_images = np.concatenate([all_images, images])
        all_rows = np.concatenate([all_rows, probabilities])
        check_queue(queue, all_rows, size, classes, tau)


def check_queue(queue: Queue, all_rows: np.ndarray, size: int, classes: int, tau: float) -> None:
    assert len(queue) <= size
    assert np.bincount(queue.labels, minlength=classes).max() <= size // classes
    assert (queue.confidences > tau).all()
    assert contents(queue) == sorted(contents(queue))  # in order of arrival
    for image, label, confidence in zip(
        contents(queue), queue.labels, queue.confidences, strict=True
    ):
        assert all_rows[int(image)].argmax() == label  # aligned with its image
        assert all_rows[int(image)].max() == confidence
    confidences = all_rows.max(axis=1)
    for label in range(classes):  # no matter how the images were divided into batches
        candidates = confidences[(all_rows.argmax(axis=1) == label) & (confidences > tau)]
        most_confident = np.sort(candidates)[::-1][: size // classes]
        in_queue = np.sort(queue.confidences[queue.labels == label])[::-1]
        np.testing.assert_array_equal(in_queue, most_confident)
