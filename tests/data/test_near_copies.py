"""Near copies of the latest images: found, forgotten when they are old, restored exactly."""

import numpy as np

from soda_tta.data.near_copies import NearCopies


def scenes(count: int) -> np.ndarray:
    return np.random.default_rng(0).random((count, 3, 32, 32)).astype(np.float32)


def test_frames_of_a_scene_are_new_once() -> None:
    latest = NearCopies(most=8)
    new = [latest.is_new(np.roll(scene, shift, axis=2)) for scene in scenes(4) for shift in (0, 1)]
    assert new == [True, False] * 4


def test_old_images_are_forgotten() -> None:
    latest = NearCopies(most=3)
    pictures = scenes(5)
    assert all(latest.is_new(picture) for picture in pictures)
    assert len(latest) == 3
    assert latest.is_new(pictures[0])
    assert not latest.is_new(pictures[4])


def test_images_without_detail_resemble_nothing() -> None:
    latest = NearCopies(most=3)
    grey = np.full((3, 32, 32), 0.5, np.float32)
    assert latest.is_new(grey) and latest.is_new(grey)


def test_a_restored_memory_decides_alike() -> None:
    pictures = scenes(6)
    first = NearCopies(most=4)
    for picture in pictures[:5]:
        first.is_new(picture)
    second = NearCopies(most=4)
    second.restore(first.state())
    again = [each.is_new(np.roll(pictures[4], 1, axis=1)) for each in (first, second)]
    assert again == [False, False]
    assert np.array_equal(first.state()["small"], second.state()["small"])
