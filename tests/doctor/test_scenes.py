"""The doctor counts scenes before anything is spent on a run."""

import numpy as np

from soda_tta import examine


def model(images: np.ndarray) -> np.ndarray:
    level = 6 * images.mean(axis=(2, 3))
    powers = np.exp(level - level.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def noise(count: int) -> np.ndarray:
    return np.random.default_rng(0).random((count, 3, 16, 16), dtype=np.float32)


def test_different_images_are_different_scenes() -> None:
    finding = examine(noise(60), model)["scenes"]
    assert finding.state == "good" and finding.measurements == {"images": 60, "scenes": 60}


def test_near_copies_are_counted_once_and_too_few_scenes_are_left_alone() -> None:
    examination = examine(np.repeat(noise(20), 10, axis=0), model)
    assert examination["scenes"].state == "caution"
    assert "only 20 scenes" in examination["scenes"].sentence
    examination = examine(np.repeat(noise(5), 40, axis=0), model)
    assert examination["scenes"].state == "bad" and examination["scenes"].remedy
    assert examination.advice == "leave" and "only 5 scenes" in examination.sentence
