"""Scenes stay whole on one side of the split, and each side takes its images evenly."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.judging.scene_means import scene_means
from soda_tta.judging.split import split_scenes


@given(
    scenes=st.lists(st.integers(0, 12), min_size=1, max_size=60),
    judged=st.integers(1, 40),
    searched=st.integers(1, 40),
    seed=st.integers(0, 99),
)
@settings(max_examples=100, deadline=None)
def test_no_scene_is_on_both_sides(scenes, judged: int, searched: int, seed: int) -> None:
    numbers = np.array(scenes)
    split = split_scenes(numbers, judged, searched, np.random.default_rng(seed))
    assert not set(numbers[split.judged]) & set(numbers[split.searched])
    assert len(split.judged) <= judged and len(split.searched) <= searched
    both = np.concatenate([split.judged, split.searched])
    assert len(np.unique(both)) == len(both)


def test_independent_images_are_divided_as_asked_for() -> None:
    split = split_scenes(np.arange(100), 75, 25, np.random.default_rng(0))
    assert (len(split.judged), len(split.searched)) == (75, 25)


def test_of_few_scenes_two_thirds_judge_with_as_many_frames_of_each() -> None:
    scenes = np.repeat(np.arange(30), 20)
    split = split_scenes(scenes, 100, 60, np.random.default_rng(0))
    _, frames = np.unique(scenes[split.judged], return_counts=True)
    assert len(frames) == 20 and set(frames) == {5}
    _, frames = np.unique(scenes[split.searched], return_counts=True)
    assert len(frames) == 10 and set(frames) == {6}


def test_means_by_hand() -> None:
    values = np.array([[1.0, 3.0, 5.0], [0.0, 2.0, 8.0]])
    means = scene_means(values, np.array([7, 7, 2]))
    np.testing.assert_allclose(means, [[5.0, 2.0], [8.0, 1.0]])  # in the order of the numbers
