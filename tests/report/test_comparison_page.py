"""The page of several runs."""

import pytest

from soda_tta import adapt
from soda_tta.errors import RunError
from soda_tta.report import write_report

from .conftest import SMALL, check_self_contained


def test_runs_are_compared_side_by_side(images, model, tmp_path) -> None:
    runs = [
        adapt(images, model, method="soda", **SMALL),
        adapt(images, model, method="soda", seed=1, **{**SMALL, "lr": 0.5}),
        adapt(images, model, method="lame"),
    ]
    labels = model(images).argmax(axis=1)
    report = write_report(runs, tmp_path / "page.html", images=images, labels=labels)
    html = report.path.read_text()
    check_self_contained(html)
    for text in ("3 runs side by side", "soda (2)", "settings.lr", "Do the runs agree?"):
        assert text in html, text
    assert [facts["title"] for facts in report.facts["runs"]] == ["soda", "soda (2)", "lame"]


def test_runs_on_different_images_are_compared_without_single_images(
    images, model, tmp_path
) -> None:
    runs = [
        adapt(images, model, method="soda", **SMALL),
        adapt(images[:20], model, method="soda", **SMALL),
    ]
    html = write_report(runs, tmp_path / "page.html").path.read_text()
    assert "Do the runs agree?" not in html and "<h2>Results</h2>" in html


def test_a_report_on_nothing_is_an_error(tmp_path) -> None:
    with pytest.raises(RunError, match="nothing to report"):
        write_report([], tmp_path / "page.html")
