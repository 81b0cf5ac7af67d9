import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from soda_tta.demo import haze, load_digits, picture_grid


@pytest.mark.parametrize("seed", range(5))
def test_the_demo_gains_at_least_25_points_within_a_minute(tmp_path, seed: int) -> None:
    command = [
        sys.executable,
        "-c",
        "from soda_tta.cli import main; raise SystemExit(main())",
        "demo",
        "--json",
    ]
    done = subprocess.run(
        [*command, "--seed", str(seed), "--out", tmp_path / "demo"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["after"] - found["before"] >= 0.25
    assert found["clean"] > 0.9 and found["queries_per_image"] == 182
    assert found["seconds"] < 60
    assert Image.open(found["picture"]).size[0] > 100


def test_the_halves_do_not_overlap_and_follow_the_seed() -> None:
    digits = load_digits(seed=0)
    assert len(digits.train) + len(digits.test) == 1797
    assert digits.train.dtype == np.float32 and digits.train.shape[1:] == (3, 16, 16)
    np.testing.assert_array_equal(digits.test, load_digits(seed=0).test)
    assert np.abs(digits.test[:50] - load_digits(seed=1).test[:50]).max() > 0


def test_haze_is_what_it_says() -> None:
    flat = np.full((200, 3, 4, 4), 0.5, np.float32)
    hazy = haze(flat, seed=0)
    assert hazy.mean() == pytest.approx(0.6 + 0.2 * 0.5, abs=0.005) and hazy.std() == pytest.approx(0.05, abs=0.005)


def test_the_picture_grid_has_a_row_a_kind() -> None:
    picture = picture_grid([np.zeros((3, 3, 16, 16), np.float32)] * 2, zoom=2, gap=1)
    assert picture.size == (3 * 18 * 2, 2 * 18 * 2)
