"""Clean images in a run: sent once, counted, within the budget, and used by the report only."""

import json

import numpy as np
import pytest

from soda_tta import Run, adapt
from soda_tta.engine.plan import plan_run
from soda_tta.errors import BudgetError, MethodError, RunError
from soda_tta.methods import find_method
from soda_tta.report import write_report

CLASSES = 6


def model(images: np.ndarray) -> np.ndarray:
    """The class is the brightness."""
    distance = images.mean(axis=(1, 2, 3))[:, None] - np.linspace(0, 1, CLASSES)
    rows = np.exp(-40 * distance**2)
    return rows / rows.sum(axis=1, keepdims=True)


def pictures(count: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    brightness = (np.arange(count) % CLASSES) / (CLASSES - 1)
    noise = 0.08 * generator.standard_normal(count)
    return np.broadcast_to(
        np.clip(brightness + noise, 0, 1)[:, None, None, None], (count, 3, 8, 8)
    ).astype(np.float32)


def test_clean_images_are_sent_once_within_the_budget_and_calibrate_the_report(tmp_path) -> None:
    images = pictures(120, 0)
    clean = pictures(120, 1)
    run = adapt(
        images,
        model,
        method="deployed",
        budget=2,
        clean=clean,
        clean_accuracy=0.9,
        out=tmp_path / "run",
    )
    assert run.ledger.by_purpose() == {"select": 120, "clean": 120} and run.ledger.limit == 240
    assert run.card.clean["accuracy"] == 0.9 and run.clean.shape == (120, CLASSES)
    assert np.array_equal(Run.load(tmp_path / "run").clean, run.clean)
    facts = write_report(tmp_path / "run", tmp_path / "page.html").facts
    estimate = facts["estimated_accuracy"]["before"]
    assert estimate["bound"] is False and estimate["low"] <= 0.9 <= estimate["high"]
    again = adapt(
        images,
        model,
        method="deployed",
        budget=2,
        clean=clean,
        clean_accuracy=0.9,
        out=tmp_path / "run",
        resume=True,
        listener=lambda event: None,
    )
    assert again.ledger.total == 240
    with pytest.raises(RunError, match="clean"):
        adapt(images, model, method="deployed", budget=2, out=tmp_path / "run", resume=True)


def test_a_report_takes_clean_responses_of_another_run_and_says_what_is_missing(tmp_path) -> None:
    run = adapt(pictures(120, 0), model, method="deployed")
    day = adapt(pictures(120, 1), model, method="deployed")
    alone = write_report(run, tmp_path / "page.html").facts
    assert alone["estimated_accuracy"] == {"before": None, "after": None}
    assert "Not enough to estimate" in alone["no_estimate"]["before"]
    json.dumps(alone)
    page = (tmp_path / "page.html").read_text()
    assert "not enough to estimate" in page and "accuracy estimated without labels" not in page
    informed = write_report(run, tmp_path / "page.html", clean=day, clean_accuracy=0.9).facts
    assert informed["estimated_accuracy"]["after"]["bound"] is False
    with pytest.raises(RunError, match="has none"):
        write_report(run, tmp_path / "page.html", clean_accuracy=0.9)
    other = adapt(pictures(120, 1), lambda images: model(images), method="deployed")
    other.card.box["fingerprint"] = "another"
    with pytest.raises(RunError, match="another model"):
        write_report(run, tmp_path / "page.html", clean=other, clean_accuracy=0.9)


def test_a_plan_counts_clean_images_within_the_budget() -> None:
    soda = find_method("soda-e")
    plan = plan_run(soda, 600, 15, {"clean": 149})
    assert plan.queries["clean"] == 149 and plan.total <= 9000 == plan.hard_limit
    with pytest.raises(BudgetError, match=r"at least 1\.5"):
        plan_run(soda, 100, 1, {"clean": 50})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clean_accuracy": 0.9}, "needs clean images"),
        ({"clean": pictures(10, 0)}, "only with the accuracy"),
        ({"clean": pictures(10, 0), "clean_accuracy": 90}, "not a valid share"),
    ],
)
def test_half_of_the_two_is_refused_before_anything_is_sent(options, message: str) -> None:
    def never(images: np.ndarray) -> np.ndarray:
        raise AssertionError("a query was sent")

    with pytest.raises(MethodError, match=message):
        adapt(pictures(10, 0), never, **options)
