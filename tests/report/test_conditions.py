"""The section of the conditions: pictures, verdicts, accuracies, and a page for every state."""

import json
from dataclasses import replace

import numpy as np
import pytest

from soda_tta.cli import main
from soda_tta.data import open_images
from soda_tta.report import write_report
from soda_tta.report.condition_pictures import adaptor_sections
from soda_tta.report.conditions import analyse_conditions
from soda_tta.report.record import read_record, record_of

from .conftest import Tags, check_self_contained


def page_of(subject, path, **options) -> str:
    write_report(subject, path, **options)
    html = path.read_text()
    check_self_contained(html)
    return html


@pytest.fixture(scope="module")
def written(mixed, tmp_path_factory) -> tuple[str, dict]:
    """The page of the mixed run with its images and labels, and its facts."""
    path = tmp_path_factory.mktemp("mixed") / "page.html"
    report = write_report(mixed.run, path, images=mixed.images, labels=mixed.labels)
    return path.read_text(), report.facts["mixed"]


@pytest.fixture
def saved(mixed, tmp_path):
    mixed.run.save(tmp_path / "run")
    return tmp_path / "run"


def test_each_condition_is_shown_before_and_after(written) -> None:
    html, _ = written
    check_self_contained(html)
    assert "<h2>Conditions</h2>" in html and "The images are of 2 conditions" in html
    assert "1 image is unlike all conditions" in html
    alts = [attributes.get("alt") or "" for tag, attributes in Tags(html).found if tag == "img"]
    assert sum(alt.startswith("before: ") for alt in alts) == 12
    assert sum(alt.startswith("after: ") for alt in alts) == 6  # the clean ones are not changed
    assert "What is done: standard contrast 100%." in html
    assert "What is done: nothing: no change helped." in html


def test_the_adaptor_is_measured_on_the_images_of_its_condition(written) -> None:
    html, _ = written
    assert "<h3>Low contrast, bright, smooth.</h3>" in html
    assert html.count("Measured on 32 images of this condition") == 1
    assert "All other images are left as they are." in html


def test_accuracies_are_those_of_each_condition(written) -> None:
    _, facts = written
    hazy, clean = facts["conditions"]
    assert hazy["accuracy"]["before"]["value"] < 0.3 and hazy["accuracy"]["after"]["value"] > 0.9
    assert clean["accuracy"]["before"] == clean["accuracy"]["after"]
    assert hazy["labelled_images"] == 110 and clean["labelled_images"] == 109  # one is unfamiliar
    assert hazy["estimated_accuracy"]["before"]["bound"] and facts["unfamiliar"] == 1
    truth = hazy["accuracy"]["before"]["value"]
    assert truth <= hazy["estimated_accuracy"]["before"]["high"] < 0.9
    json.dumps(facts)


def test_labels_of_one_condition_leave_the_other_unknown(mixed) -> None:
    labels = np.where(mixed.hazy, mixed.labels, -1)
    hazy, clean = analyse_conditions(record_of(mixed.run), labels)
    assert hazy.measured[1].value > 0.9 and clean.measured == (None, None)


def test_a_stored_run_has_the_same_page(mixed, saved, written, tmp_path, capsys) -> None:
    np.save(tmp_path / "images.npy", mixed.images)
    np.save(tmp_path / "labels.npy", mixed.labels)
    words = ["report", str(saved), "--json", "--out", str(tmp_path / "stored.html")]
    words += ["--images", str(tmp_path / "images.npy"), "--labels", str(tmp_path / "labels.npy")]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["mixed"] == written[1]
    html = (tmp_path / "stored.html").read_text()
    assert "<h2>Conditions</h2>" in html and "<dt>mixed" not in html


@pytest.mark.parametrize("damage", ["missing", "damaged", "facts"])
def test_damaged_conditions_are_named_and_the_rest_is_shown(saved, damage: str) -> None:
    card = json.loads((saved / "run.json").read_text())
    path = saved / "evidence.safetensors"
    if damage == "facts":
        card["mixed"]["conditions"].pop()
        (saved / "run.json").write_text(json.dumps(card))
    elif damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"no arrays")
    record = read_record(saved)
    assert record.conditions is None and record.adaptor is not None
    (sentence,) = record.missing
    assert sentence.startswith("Conditions: they cannot be read")


def test_an_adaptor_without_its_conditions_is_shown_on_images_or_without(mixed) -> None:
    record = record_of(replace(mixed.run, conditions=None))  # as of an interrupted run
    (section,) = adaptor_sections(record, open_images(mixed.images))
    assert section["basis"] == "32 images of this condition"
    (section,) = adaptor_sections(record, None)
    assert section["basis"] == "32 generated pictures"


def test_conditions_that_are_kept_say_what_would_settle_them(mixed, tmp_path) -> None:
    conditions = mixed.run.conditions
    refused = replace(conditions[0].verdict, adopt=False, p_value=0.4)
    kept = conditions.with_verdicts([refused, conditions[1].verdict])
    run = replace(mixed.run, conditions=kept, adaptor=kept.adaptor, after=mixed.run.before)
    html = page_of(run, tmp_path / "page.html")
    assert "nothing: what was found is not clearly better" in html
    assert "Conditions that are left as they are" in html


def test_runs_with_and_without_conditions_are_compared(mixed, tmp_path) -> None:
    plain = replace(mixed.run, conditions=None)
    html = page_of([mixed.run, plain], tmp_path / "page.html", images=mixed.images)
    assert "50 % of the images" in html
