"""What a person reads about the conditions of a run."""

import json
from dataclasses import replace

from soda_tta import Run
from soda_tta.judging.condition_table import (
    NOT_BETTER,
    NOTHING_HELPED,
    condition_rows,
    unfamiliar_sentence,
)


def test_each_condition_has_its_share_its_verdict_and_what_is_done(mixed) -> None:
    run = mixed.run
    hazy, clean = condition_rows(run.conditions, run.before, run.after)
    assert hazy.words.startswith("low contrast") and hazy.share == clean.share == 0.5
    assert (hazy.verdict, clean.verdict) == ("adopted", "left as they are")
    assert "contrast" in hazy.does and clean.does == NOTHING_HELPED
    assert hazy.changed == run.changed > 50 and clean.changed == 0


def test_without_answers_the_changes_are_not_known(mixed) -> None:
    row = condition_rows(mixed.run.conditions, mixed.run.before, None)[0]
    assert row.changed is None and "not known yet" in row.cells()


def test_what_was_found_and_refused_is_said(mixed) -> None:
    conditions = mixed.run.conditions
    refused = replace(conditions[0].verdict, adopt=False)
    row = condition_rows(conditions.with_verdicts([refused, None]), mixed.run.before, None)[0]
    assert (row.verdict, row.does) == ("left as they are", NOT_BETTER)


def test_unfamiliar_images_are_counted_in_words() -> None:
    assert unfamiliar_sentence(0) is None
    assert unfamiliar_sentence(1) == "1 image is unlike all conditions and stays as it is."


def test_run_json_holds_the_same_and_a_stored_run_is_read_back(mixed, tmp_path) -> None:
    mixed.run.save(tmp_path)
    facts = json.loads((tmp_path / "run.json").read_text())["mixed"]
    assert [each["changed_answers"] for each in facts["conditions"]] == [mixed.run.changed, 0]
    assert [each["share"] for each in facts["conditions"]] == [0.5, 0.5]
    assert facts["unfamiliar"] == 1
    assert Run.load(tmp_path).summary()["mixed"] == facts


def test_a_notebook_shows_the_conditions_below_the_run(mixed) -> None:
    html = mixed.run._repr_html_()
    assert html.count("<table>") == 2 and "<th>what is done</th>" in html
    assert "<td>left as they are</td>" in html and "1 image is unlike all conditions" in html
    assert "<th>adaptor</th>" not in html  # the table says it, condition by condition
