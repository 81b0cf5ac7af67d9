"""The doctor shows the conditions of the images, and its advice counts on them."""

import json

import numpy as np

from soda_tta import examine
from soda_tta.cli.doctor import with_flags
from soda_tta.data import open_images
from soda_tta.doctor.advice import advise
from soda_tta.doctor.conditions import SEPARATELY, TOGETHER, check_conditions
from soda_tta.doctor.finding import Finding


def check(images: np.ndarray, most: int = 500):
    source = open_images(images)
    return check_conditions(source, np.arange(min(most, len(images))), 0)


def test_mixed_images_are_shown_with_their_shares(mixed) -> None:
    finding = check(mixed.images)
    assert finding.sentence == (
        "2 conditions among 220 images: low contrast, bright, smooth (50%); "
        "dark, clipped, high contrast (50%)."
    )
    assert finding.state == "good" and finding.remedy == SEPARATELY
    assert [each["images"] for each in finding.measurements["conditions"]] == [110, 110]


def test_the_advice_says_that_they_are_adapted_separately(mixed) -> None:
    trial = Finding(name="trial", state="good", sentence="A restoration helps.")
    advice, sentence = advise([trial, check(mixed.images)], None, None, 220)
    assert advice == "go"
    assert sentence.endswith(" The 2 conditions of the images are adapted separately.")
    assert "separately" not in advise([trial, check(mixed.images[:180])], None, None, 180)[1]


def test_an_examination_shows_them_without_a_query(mixed) -> None:
    examination = examine(mixed.images, mixed.model)
    assert examination.total_queries <= 2 * 220  # telling them apart needs none
    remedy = with_flags(examination)["conditions"].remedy
    assert "--conditions 1 learns one adaptor" in remedy
    json.dumps(examination.facts())


def test_images_of_one_condition_are_said_to_be_so(mixed) -> None:
    finding = check(mixed.images[mixed.hazy])
    assert "one condition" in finding.sentence and not finding.remedy
    assert finding.measurements["adapted_separately"] == 1


def test_conditions_that_are_too_small_are_adapted_together(mixed) -> None:
    assert check(mixed.images[:180]).remedy == TOGETHER


def test_few_or_tiny_images_show_no_conditions(mixed) -> None:
    assert check(mixed.images[:79]) is None
    assert check(mixed.images[:, :, :7, :7]) is None
