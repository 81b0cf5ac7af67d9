"""The terminal shows the conditions of a run, and a bar while they are found."""

from types import SimpleNamespace

import pytest

from soda_tta.cli.judge import show
from soda_tta.cli.summary import print_summary
from soda_tta.data import open_images
from soda_tta.engine.events import Measured
from soda_tta.engine.work import Interrupted, Work
from soda_tta.methods.economy import soda_e
from soda_tta.methods.economy_campaign import conditions_of


def test_adapt_prints_a_small_table_instead_of_one_long_adaptor(mixed, capsys) -> None:
    print_summary(mixed.run, images="mixed/")
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    start = lines.index("conditions: 2, told apart by the pixels")
    hazy, does, clean, nothing, unfamiliar = lines[start + 1 : start + 6]
    assert hazy.startswith("low contrast, bright, smooth 50% adopted ")
    assert hazy.endswith(f"{mixed.run.changed} answers changed")
    assert "contrast" in does and nothing == "nothing: no change helped"
    assert clean.endswith("50% left as they are 0 answers changed")
    assert unfamiliar == "1 image is unlike all conditions and stays as it is."
    assert not any(line.startswith("adaptor ") for line in lines)


def test_judge_prints_the_same_table(mixed, capsys) -> None:
    show(SimpleNamespace(json=False, folder="run"), mixed.run)
    out = capsys.readouterr().out
    assert "conditions" in out and "left as they are" in out and "answers changed" in out


def test_finding_the_conditions_is_shown_and_can_be_stopped(mixed) -> None:
    events: list = []
    work = Work(
        images=open_images(mixed.images),
        meter=mixed.model,
        before=mixed.run.before,
        plan=None,
        listener=events.append,
    )
    assert len(conditions_of(soda_e, work)) == 2
    assert events[-1] == Measured(220, 220)
    work.stop = lambda: True
    with pytest.raises(Interrupted):
        conditions_of(soda_e, work)
