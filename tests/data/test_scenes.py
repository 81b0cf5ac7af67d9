"""Near copies are found from the pixels, and unrelated images are not taken for them."""

import numpy as np
import pytest

from soda_tta.data.scenes import connected, find_scenes, in_order_of_appearance


def pictures(count: int, side: int = 32, seed: int = 0) -> np.ndarray:
    """Pictures with structure at several scales, unrelated to each other."""
    generator = np.random.default_rng(seed)
    result = np.zeros((count, 3, side, side), np.float32)
    for cells in (4, 8, 16):
        coarse = generator.random((count, 1, cells, cells), dtype=np.float32)
        result += np.kron(coarse, np.ones((1, 1, side // cells, side // cells), np.float32)) / 3
    return result


def jittered(images: np.ndarray, frames: int, seed: int = 1) -> np.ndarray:
    """Frames: shifted by up to two pixels, a little brighter or darker, with a little noise."""
    generator = np.random.default_rng(seed)
    shown = np.repeat(images, frames, axis=0)
    for frame in shown:
        frame[:] = np.roll(frame, generator.integers(-2, 3, 2), axis=(1, 2))
    light = 1 + 0.05 * generator.standard_normal((len(shown), 1, 1, 1))
    noise = 0.02 * generator.standard_normal(shown.shape)
    return np.clip(shown * light + noise, 0, 1).astype(np.float32)


@pytest.mark.parametrize("side", [32, 64])
def test_frames_of_a_scene_are_found_in_any_order(side: int) -> None:
    truth = np.repeat(np.arange(12), 8)
    shown = jittered(pictures(12, side), 8)
    order = np.random.default_rng(2).permutation(len(truth))
    found = find_scenes([shown[order][:50], shown[order][50:]])
    # no scene holds two, and hardly any is split
    for scene in np.unique(found):
        assert len(np.unique(truth[order][found == scene])) == 1
    assert len(np.unique(found)) <= 14


def test_unrelated_images_are_independent() -> None:
    assert len(np.unique(find_scenes([pictures(300)]))) >= 295


def test_equal_images_are_one_scene_and_blank_ones_are_not_compared() -> None:
    same = np.repeat(pictures(1), 5, axis=0)
    assert find_scenes([same]).tolist() == [0] * 5
    assert len(np.unique(find_scenes([np.full((4, 3, 32, 32), 0.5, np.float32)]))) == 4


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_images(count: int) -> None:
    assert find_scenes([pictures(count)]).tolist() == list(range(count))


def test_links_join_through_others_and_numbers_follow_the_first_image() -> None:
    assert connected(5, np.array([4, 2]), np.array([2, 1])).tolist() == [0, 1, 1, 2, 1]
    assert in_order_of_appearance(np.array(["b", "a", "b"])).tolist() == [0, 1, 0]
