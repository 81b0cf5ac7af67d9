"""The random walk of benchmarks/random_walk.py: its steps are as long as its table says."""

import numpy as np


def test_a_step_is_measured_in_normalised_pixels(benchmark_script) -> None:
    images = np.full((2, 3, 4, 4), 0.5, np.float32)
    change = np.abs(benchmark_script("random_walk").walk(images, 1e-3, 1) - images)
    np.testing.assert_allclose(change, 2e-4, rtol=1e-3)
