import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from soda_tta import Run, adapt
from soda_tta.box import OnnxBox
from soda_tta.data import open_images
from soda_tta.demo import BUDGET, accuracy, haze, hazy_digits, load_digits, picture_grid


def test_the_demo_shows_soda_e_beside_the_papers_soda(tmp_path) -> None:
    command = [
        sys.executable,
        "-c",
        "from soda_tta.cli import main; raise SystemExit(main())",
        "demo",
        "--json",
    ]
    done = subprocess.run(
        [*command, "--out", tmp_path / "demo"], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    economy, paper = found["methods"]["soda-e"], found["methods"]["soda"]
    assert found["clean"] > 0.9 and list(found["methods"]) == ["soda-e", "soda"]
    assert (
        economy["after"] - found["before"] >= 0.40 and economy["queries_per_image"] <= BUDGET == 10
    )
    assert paper["after"] - found["before"] >= 0.25 and paper["queries_per_image"] == 182
    assert economy["after"] >= paper["after"] + 0.05
    assert (
        economy["seconds"] < 60 and paper["seconds"] < 120 and economy["seconds"] < paper["seconds"]
    )
    assert "contrast" in economy["does"] and paper["settings"]["epochs"] == 30
    assert Image.open(found["picture"]).size[0] > 100
    page = Path(found["report"]).read_text()
    assert page.lower().startswith("<!doctype html")
    assert "soda-e" in page and found["report"].endswith("report.html")
    for name, method in (("run", "soda-e"), ("run-paper", "soda")):
        assert Run.load(tmp_path / "demo" / name).card["method"] == method


@pytest.mark.parametrize("seed", range(5))
def test_soda_e_gains_at_least_40_points_at_10_queries_per_image(tmp_path, seed: int) -> None:
    model, images = hazy_digits(tmp_path, seed)
    labels = load_digits(seed).test_labels
    run = adapt(images, OnnxBox(model), budget=BUDGET, seed=seed)  # it is the default
    before, after = accuracy(run.before, labels), accuracy(run.probabilities, labels)
    assert after - before >= 0.40 and run.queries_per_image <= 10 and run.verdict.adopt
    hazy = open_images(images)[slice(0, 20)]
    assert np.abs(run.adaptor(hazy) - hazy).max() > 0.1
    if seed == 1:  # beside the paper's on a second seed: the first is the whole demo above
        paper = adapt(
            images,
            OnnxBox(model),
            method="soda",
            seed=seed,
            epochs=30,
            lr=2e-2,
            listener=lambda event: None,
        )
        assert accuracy(paper.probabilities, labels) - before >= 0.25
        assert after >= accuracy(paper.probabilities, labels) + 0.05


def test_the_halves_do_not_overlap_and_follow_the_seed() -> None:
    digits = load_digits(seed=0)
    assert len(digits.train) + len(digits.test) == 1797
    assert digits.train.dtype == np.float32 and digits.train.shape[1:] == (3, 16, 16)
    np.testing.assert_array_equal(digits.test, load_digits(seed=0).test)
    assert np.abs(digits.test[:50] - load_digits(seed=1).test[:50]).max() > 0


def test_haze_is_what_it_says() -> None:
    flat = np.full((200, 3, 4, 4), 0.5, np.float32)
    hazy = haze(flat, seed=0)
    assert hazy.mean() == pytest.approx(0.6 + 0.2 * 0.5, abs=0.005) and hazy.std() == pytest.approx(
        0.05, abs=0.005
    )


def test_the_picture_grid_has_a_row_a_kind() -> None:
    picture = picture_grid([np.zeros((3, 3, 16, 16), np.float32)] * 2, zoom=2, gap=1)
    assert picture.size == (3 * 18 * 2, 2 * 18 * 2)
