"""Conditions told apart by the pixels."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from soda_tta import find_conditions
from soda_tta.cli import main
from soda_tta.conditions.merging import confused, merged
from soda_tta.conditions.mixture import Mixture, fit
from soda_tta.conditions.statistics import NAMES, statistics
from soda_tta.conditions.words import describe
from soda_tta.errors import ImageError

SIDE = 16
RANDOM = np.random.default_rng(0)


def scenes(count: int) -> np.ndarray:
    """Random coloured patches with sharp edges."""
    patches = RANDOM.random((count, 3, 4, 4))
    return patches.repeat(4, axis=2).repeat(4, axis=3).astype(np.float32)


def noisy(images: np.ndarray) -> np.ndarray:
    noise = 0.2 * RANDOM.standard_normal(images.shape)
    return np.clip(images + noise, 0, 1).astype(np.float32)


def hazy(images: np.ndarray) -> np.ndarray:
    return (0.6 + 0.1 * images).astype(np.float32)


MIXED = np.concatenate([scenes(160), noisy(scenes(80)), hazy(scenes(80))])
TRUE = np.repeat([0, 1, 2], [160, 80, 80])


def column(name: str, images: np.ndarray) -> np.ndarray:
    return statistics(images)[:, NAMES.index(name)]


def test_the_conditions_of_a_mixed_folder_are_found() -> None:
    found = find_conditions(MIXED)
    for condition in range(len(found)):  # none of them mixes two
        assert len(set(TRUE[found.of_each == condition])) == 1
    assert 3 <= len(found) <= 4 and sum(found.sizes()) == len(MIXED)
    assert any("noisy" in words for words in found.words)
    assert any("low contrast" in words for words in found.words)
    again = find_conditions(MIXED)
    np.testing.assert_array_equal(found.of_each, again.of_each)


def test_one_condition_is_one() -> None:
    assert len(find_conditions(noisy(scenes(200)))) == 1


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("noise", noisy),
        ("contrast", lambda images: 0.5 + 2 * (images - 0.5)),
        ("brightness", lambda images: images + 0.2),
        ("clipped", lambda images: np.round(images)),
    ],
)
def test_a_number_rises_with_what_it_is_named_after(name: str, change) -> None:
    images = 0.3 + 0.4 * scenes(4)
    assert (column(name, change(images).astype(np.float32)) > column(name, images)).all()


def test_sharpness_falls_with_blur_and_not_with_contrast() -> None:
    from scipy.ndimage import gaussian_filter

    images = scenes(20)
    blurred = gaussian_filter(images, (0, 0, 1.5, 1.5))
    sharp = column("sharpness", images)
    assert (column("sharpness", blurred) < sharp - 0.2).mean() > 0.9
    np.testing.assert_allclose(column("sharpness", hazy(images)), sharp, atol=0.1)


def test_means_by_hand() -> None:
    grey = np.full((1, 3, 8, 8), 0.25, np.float32)
    assert column("brightness", grey)[0] == pytest.approx(0.25)
    assert column("contrast", grey)[0] == pytest.approx(np.log(1e-3), abs=1e-3)


def test_a_density_by_hand() -> None:
    # one Gaussian with variance 4: at its mean, log density -log(2) - log(2 pi) / 2
    mixture = Mixture(np.ones(1), np.zeros((1, 1)), np.full((1, 1, 1), 4.0))
    expected = -np.log(2) - np.log(2 * np.pi) / 2
    assert mixture.log_densities(np.zeros((1, 1)))[0, 0] == pytest.approx(expected)
    assert mixture.distances(np.array([[4.0]]))[0, 0] == pytest.approx(4)  # two deviations, squared


def test_the_criterion_prefers_the_true_number() -> None:
    rows = np.concatenate([RANDOM.normal(centre, 1, (80, 2)) for centre in (-6, 0, 6)])
    criteria = {count: fit(rows, count).criterion(rows) for count in (1, 2, 3, 4)}
    assert min(criteria, key=criteria.get) == 3


def test_confusion_by_hand() -> None:
    shares = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    # of the second Gaussian (1.3 images in all), 0.5 is assigned to the first
    assert confused(shares)[1, 0] == pytest.approx(0.5 / 1.3)
    assert merged(shares) == [[0, 1]]


def test_words_say_what_stands_out() -> None:
    means = np.zeros((1, len(NAMES)))
    means[0, NAMES.index("sharpness")] = -2
    means[0, NAMES.index("brightness")] = -1.5
    assert describe(means) == ["blurred, dark"]


@pytest.mark.parametrize("images", [np.zeros((30, 3, 16, 16), np.float32), scenes(5)])
def test_identical_and_few_images_are_one_condition(images) -> None:
    found = find_conditions(images)
    assert len(found) == 1 and found.words == ["all alike"]


def test_small_groups_of_many_images_are_each_fitted(monkeypatch) -> None:
    monkeypatch.setattr("soda_tta.conditions.find.FITTED", 100)  # fewer than the images
    found = find_conditions(MIXED, groups=np.arange(320) // 40)
    for condition in range(len(found)):
        assert len(set(TRUE[found.of_each == condition])) == 1


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ImageError, match="at least 8 pixels"):
        find_conditions(np.zeros((5, 3, 4, 4), np.float32))
    with pytest.raises(ImageError, match="not valid for 5 images"):
        find_conditions(scenes(5), conditions=6)
    with pytest.raises(ImageError, match="none of 5 groups has 40 images"):
        find_conditions(scenes(5), groups=np.arange(5))
    with pytest.raises(ImageError, match="groups has shape"):
        find_conditions(scenes(5), groups=[0, 1])


def test_the_command_writes_a_table_and_a_picture(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("mixed.npy", np.rint(MIXED * 255).astype(np.uint8))
    words = ["conditions", "--images", "mixed.npy", "--count", "3"]
    assert main([*words, "--csv", "table.csv", "--sheet", "sheet.png"]) == 0
    text = capsys.readouterr().out
    assert "320 images, 3 conditions" in text and "written: table.csv" in text
    lines = list(csv.DictReader(Path("table.csv").read_text().splitlines()))
    assert len(lines) == 320 and set(lines[0]) == {"image", "condition", "distance", "familiar"}
    assert Image.open("sheet.png").height > 200
    assert main([*words, "--csv", "table.csv"]) == 2  # it exists already
    assert main(["conditions", "--images", "mixed.npy", "--count", "321"]) == 2
    assert "--count 321 is not valid for 320 images" in capsys.readouterr().err
    main([*words, "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert sum(each["images"] for each in facts["conditions"]) == 320


def test_the_command_takes_what_is_known(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for number, image in enumerate(MIXED[80:240]):
        folder = Path("images", "plain" if number < 80 else "noisy")
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.rint(image.transpose(1, 2, 0) * 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    words = ["conditions", "--images", "images", "--condition-by"]
    assert main([*words, "folder", "--count", "1", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [each["images"] for each in facts["conditions"]] == [80, 80]
    assert main([*words, "name:(.*)"]) == 2
    assert "or leave out --condition-by" in capsys.readouterr().err
