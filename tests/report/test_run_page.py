"""The page of one run, as a reader gets it."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from soda_tta import adapt
from soda_tta.adaptors import Answering
from soda_tta.report import write_report

from .conftest import EVIL, check_self_contained, make_run, make_verdict, rows

SECTIONS = (
    "Did accuracy improve?",
    "Which predictions changed?",
    "What does the adaptor do?",
    "How did the run progress?",
    "How confident is the model?",
    "Protocol card",
    "Repeat this run",
    "Confusion matrix",
    "estimated accuracy",
    "true accuracy",
    "calibration error",
    "1.50 at 1.5 per 1,000 queries",
)
FIGURES = 7  # shares, tone, detail, objective, mutual information, confidence, reliability


def test_a_complete_page_has_every_section(run, images, model, tmp_path) -> None:
    labels = model(images).argmax(axis=1)
    path = run.report(tmp_path / "page.html", images=images, labels=labels, price=1.5)
    html = path.read_text()
    check_self_contained(html)
    for section in SECTIONS:
        assert section in html, section
    assert html.count("<svg") == FIGURES
    assert html.count("<img") >= 9 and "difference ×4" in html


def test_the_same_run_gives_the_same_page(run, tmp_path) -> None:
    first = run.report(tmp_path / "a.html").read_bytes()
    assert run.report(tmp_path / "b.html").read_bytes() == first


def test_no_two_figures_share_an_id(run, images, tmp_path) -> None:
    html = run.report(tmp_path / "page.html", images=images, labels=np.zeros(50, int)).read_text()
    ids = re.findall(r'\sid="([^"]*)"', html)
    assert len(ids) == len(set(ids)) and ids
    assert set(re.findall(r"url\(#([^)]*)\)", html)) <= set(ids)


def test_names_cannot_inject_anything(tmp_path) -> None:
    classes = [EVIL, "</style><script>alert(2)</script>", "{{ 7 * 7 }}"]
    names = [f"{EVIL}{index}.png" for index in range(6)]
    verdict = make_verdict(True, EVIL)
    run = make_run(rows(0, 1, 2, 0, 1, 2), rows(0, 0, 0, 0, 1, 1), names, verdict)
    run.notices.append(EVIL)
    run.reason = EVIL
    run.card = replace(run.card, method=EVIL, command=EVIL, settings={EVIL: EVIL})
    pictures = np.random.default_rng(0).random((6, 3, 8, 8)).astype(np.float32)
    other = make_run(rows(0, 1, 2, 0, 1, 2), rows(2, 1, 2, 0, 1, 2), names)
    labels = [0, 0, 0, 0, 1, 1]
    for subjects in (run, [run, other]):
        report = write_report(
            subjects, tmp_path / "page.html", images=pictures, labels=labels, classes=classes
        )
        html = report.path.read_text()
        check_self_contained(html)
        assert "&lt;script&gt;alert(&#39;evil&#39;)" in html
        assert "{{ 7 * 7 }}" in html and "49" not in html.split()


def test_a_file_name_that_is_not_utf8_does_not_break_the_page(tmp_path) -> None:
    name = b"caf\xe9.png".decode("utf-8", "surrogateescape")
    pictures = np.zeros((2, 3, 8, 8), np.float32)
    run = make_run(rows(0, 1), rows(1, 1), [name, "b"])
    report = write_report(run, tmp_path / "page.html", images=pictures)
    assert "caf\N{REPLACEMENT CHARACTER}.png" in report.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (rows(0, 1, 1), rows(0, 1, 2)),  # three images
        (rows(0, 0, 0), rows(0, 0, 0)),  # one class, nothing changed
        (rows(0), rows(1)),  # one image
        (rows(0, 1, 1, of=1000), rows(0, 7, 1, of=1000)),  # as many classes as ImageNet
        (rows(0, 1, confidence=1.0), rows(1, 1, confidence=1.0)),  # certain
        (rows(0, 1), None),  # not evaluated
    ],
)
def test_little_data_gives_a_page(tmp_path, before, after) -> None:
    run = make_run(before, after)
    for labels in (None, np.zeros(len(before), int)):
        report = write_report(run, tmp_path / "page.html", labels=labels)
        check_self_contained(report.path.read_text())
        expected = None if after is None else run.changed
        assert report.facts["changed_answers"] == expected


def test_a_million_images_fit_in_memory_and_take_seconds(tmp_path) -> None:
    code = f"""
import re, time
from pathlib import Path
import numpy as np
generator = np.random.default_rng(0)
before = generator.dirichlet(np.full(10, 0.3), 1_000_000).astype(np.float32)
after = before[::-1].copy()
from soda_tta import Run
from soda_tta.adaptors import Identity
from soda_tta.box import Ledger
from soda_tta.engine.card import Card
card = Card(method="x", settings={{}}, seed=0, budget=None, images={{"count": 1_000_000}}, box={{}},
            versions={{}}, plan={{}})
ledger = Ledger()
ledger.spend(2_000_000, "select")
run = Run(before=before, after=after, adaptor=Identity(), ledger=ledger, history=[],
          stopped="finished", reason="", card=card,
          names=[f"{{i}}.png" for i in range(1_000_000)], seconds=1.0)
from soda_tta.report import write_report
def peak():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024
began, held = time.perf_counter(), peak()
report = write_report(run, {str(tmp_path / "page.html")!r}, labels=after.argmax(1))
print(time.perf_counter() - began, peak() - held, report.facts["accuracy"]["after"]["value"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, megabytes, accuracy = map(float, done.stdout.split())
    assert accuracy == 1 and seconds < 60 and megabytes < 500
    assert (tmp_path / "page.html").stat().st_size < 500_000


def test_a_method_without_an_adaptor_says_so(images, model, tmp_path) -> None:
    run = adapt(images, model, method="lame")
    html = run.report(tmp_path / "page.html", images=images).read_text()
    assert "the images are left as they are" in html and "soda-tta export" not in html


def test_labels_of_some_images_measure_only_those(tmp_path) -> None:
    run = make_run(rows(1, 0, 0, 0), rows(0, 1, 1, 1))
    report = write_report(run, tmp_path / "page.html", labels=np.array([0, -1, -1, -1]))
    accuracy = report.facts["accuracy"]
    assert (accuracy["images"], accuracy["corrected"], accuracy["harmed"]) == (1, 1, 0)


def test_the_facts_have_values_before_and_after(tmp_path) -> None:
    run = make_run(rows(0, 1, confidence=0.6), rows(0, 1, confidence=0.9))
    facts = write_report(run, tmp_path / "page.html", labels=[0, 1]).facts
    assert facts["mean_confidence"] == {
        "before": pytest.approx(0.6),
        "after": pytest.approx(0.9),
    }
    assert facts["mutual_information"]["before"] < facts["mutual_information"]["after"]
    assert facts["estimated_accuracy"].keys() == {"before", "after"}
    assert facts["accuracy"]["calibration_error"] == {
        "before": pytest.approx(0.4),
        "after": pytest.approx(0.1),
    }


def test_a_run_in_which_nothing_changed_shows_no_images(tmp_path) -> None:
    before = rows(0, 1, 2, 0)
    images = np.random.default_rng(0).random((4, 3, 8, 8), np.float32)
    html = make_run(before, before.copy()).report(tmp_path / "a.html", images=images).read_text()
    assert "<img" not in html and "No probability changed" in html


def test_classes_with_few_images_are_not_compared(tmp_path) -> None:
    one_each = make_run(rows(0, 1, 2), rows(1, 1, 1))
    html = one_each.report(tmp_path / "a.html", labels=np.array([0, 1, 1])).read_text()
    assert "Classes are not compared: each has fewer than 5 labelled images." in html
    assert "Classes that gained" not in html and "Most frequent mistakes" not in html
    labels = np.array([0] * 5 + [1])
    run = make_run(rows(1, 1, 1, 0, 0, 1), rows(0, 0, 0, 0, 0, 0))
    html = run.report(tmp_path / "b.html", labels=labels).read_text()
    assert "fewer than 5 labelled images are left out: 1 of 2." in html
    assert "Classes that gained" in html and "Most frequent mistakes" in html


def test_what_was_stated_about_the_classes_is_shown(run, tmp_path) -> None:
    assert "How do responses become answers?" not in run.report(tmp_path / "a.html").read_text()
    stated = {"views": ["image", "mirror"], "prior": "balanced", "weights": [0.5, 2.0]}
    weights = np.resize([0.5, 2.0], run.before.shape[1])
    answered = run.adaptor.answered(Answering(("mirror",), weights))
    page = replace(run, adaptor=answered, card=replace(run.card, answering=stated))
    html = page.report(tmp_path / "b.html").read_text()
    assert "Stated about the classes: balanced" in html
    assert "Mean over the image and its mirror image" in html
    assert "2 queries per image" in html
