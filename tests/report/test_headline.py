"""The conclusion at the top of a page."""

import re
from dataclasses import replace

import numpy as np
import pytest

from soda_tta.report import write_report

from .conftest import make_run, make_verdict, rows

COUNT = 100
TRUTH = np.arange(COUNT) % 3
CORRECT = rows(*TRUTH)
WRONG = rows(*(TRUTH + 1) % 3)


def tone_and_word(tmp_path, run, labels=None) -> tuple[str, str]:
    html = write_report(run, tmp_path / "page.html", labels=labels).path.read_text()
    pattern = r'<section class="verdict (\w+)">\s*<strong>(.*?)</strong>'
    tone, word = re.search(pattern, html).groups()
    return tone, word


@pytest.mark.parametrize(
    ("before", "after", "verdict", "expected"),
    [
        (WRONG, CORRECT, None, ("good", "Use it: it helps")),
        (CORRECT, WRONG, make_verdict(True), ("bad", "Do not use it: it harms")),
        (CORRECT, CORRECT, None, ("open", "No clear difference")),
    ],
)
def test_labels_decide_even_against_the_verdict(tmp_path, before, after, verdict, expected) -> None:
    run = make_run(before, after, None, verdict)
    assert tone_and_word(tmp_path, run, TRUTH) == expected


@pytest.mark.parametrize(
    ("before", "after", "verdict", "expected"),
    [
        (WRONG, CORRECT, make_verdict(True), ("good", "Use it")),
        (WRONG, CORRECT, make_verdict(False), ("bad", "Leave the images as they are")),
        (WRONG, CORRECT, None, ("open", "Undecided")),
        (CORRECT, CORRECT, None, ("open", "Nothing changed")),
        (CORRECT, None, None, ("open", "No predictions yet")),
    ],
)
def test_without_labels_the_verdict_of_the_method_decides(
    tmp_path, before, after, verdict, expected
) -> None:
    assert tone_and_word(tmp_path, make_run(before, after, None, verdict)) == expected


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("verdict", [None, make_verdict(True)])
def test_images_the_budget_did_not_reach_are_reported_at_the_top(
    tmp_path, after: int, verdict
) -> None:
    run = make_run(rows(*[0] * 20), rows(*[after] * 20), None, verdict)
    report = write_report(replace(run, unreached=7), tmp_path / "page.html")
    sentences = [text for text in report.facts["headline"] if "unadapted prediction: 7." in text]
    assert len(sentences) == 1 and "soda-tta apply" in sentences[0]
    assert report.facts["unreached_images"] == 7
    complete = write_report(run, tmp_path / "page.html").facts
    assert complete["unreached_images"] == 0
    assert not any("unadapted" in text for text in complete["headline"])


def test_unreached_images_survive_saving_and_loading(tmp_path) -> None:
    run = replace(make_run(rows(0, 1), rows(1, 1)), unreached=1)
    run.save(tmp_path)
    report = write_report(tmp_path, tmp_path / "page.html")
    assert report.facts["unreached_images"] == 1
    assert any("unadapted prediction: 1." in text for text in report.facts["headline"])


def test_a_class_that_lost_is_named_although_the_mean_rose(tmp_path) -> None:
    truth = np.repeat([0, 1, 2], 40)
    run = make_run(rows(*np.repeat([1, 0, 2], 40)), rows(*np.repeat([0, 1, 0], 40)))
    report = write_report(run, tmp_path / "page.html", labels=truth, classes=["cat", "dog", "frog"])
    sentences = report.facts["headline"]
    assert sentences[0] == "Use it: it helps."
    assert "Some classes lost accuracy: frog (-100.0 points)." in sentences
