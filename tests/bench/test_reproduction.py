"""The page of measured tables: it is what the stores give, and its verdicts follow from the numbers."""

from dataclasses import replace

import numpy as np
import pytest

from soda_tta.bench import GRIDS, Cell, Store, find_grid


@pytest.fixture(scope="module")
def reproduction(benchmark_script):
    return benchmark_script("reproduction")


def result(after: float) -> dict:
    return {"before": 20.0, "after": after, "queries_an_image": 182.0, "curve": [], "card": {}}


def test_the_page_is_what_the_stores_give(reproduction) -> None:
    page = reproduction.PAGE.read_text()
    assert reproduction.rendered(page) == page, "python benchmarks/reproduction.py"


def test_every_grid_but_the_taste_of_one_is_on_the_page_and_its_rows_are_cells_of_it(reproduction) -> None:
    assert {each.grid for each in reproduction.EXPERIMENTS} == set(GRIDS) - {"small"}
    for experiment in reproduction.EXPERIMENTS:
        cells = [cell for scale in ("desk", "paper") for cell in find_grid(experiment.grid, scale)]
        for row in experiment.rows:
            assert any(reproduction.belongs(cell, row) for cell in cells), (experiment.grid, row)
        names = {row.name for row in experiment.rows}
        assert len(names) == len(experiment.rows)
        assert all({claim.first, claim.second} <= names for claim in experiment.claims), experiment.grid


def test_a_table_its_verdicts_and_what_is_missing(reproduction, tmp_path) -> None:
    store = Store(tmp_path / "queries")
    for q, noise, contrast in ((2, 40.0, 60.0), (5, 40.5, 60.5), (20, 46.0, 66.0)):
        for corruption, after in (("gaussian_noise", noise), ("contrast", contrast)):
            store.add(Cell(method="soda", corruption=corruption, numbers={"q": q}), result(after))
    (queries,) = (each for each in reproduction.EXPERIMENTS if each.grid == "queries")
    text = reproduction.experiment_text(queries, store)
    assert "| before | 20.0 | 20.0 | 20.0 | 1 |  |" in text
    assert "| soda, q 2 | 40.0 | 60.0 | 50.0 | 182 | 82.43 |" in text
    assert "nearly as good as five: **no difference above 4.0 points** (soda, q 5 50.5, soda, q 2 50.0)" in text
    assert "nothing over five: **differs** (soda, q 20 56.0, soda, q 5 50.5)" in text
    assert "better than any of them: not measured yet" in text
    assert "6 cells, 1 seed. cifar10, cifar10_resnet20, severity 5, 500 images." in text


def test_the_mean_is_over_the_corruptions_all_rows_have(reproduction, tmp_path) -> None:
    store = Store(tmp_path / "alpha")
    for alpha, corruption, after in ((0.0, "contrast", 50.0), (0.0, "gaussian_noise", 10.0), (1.0, "contrast", 70.0)):
        store.add(Cell(method="soda", corruption=corruption, numbers={"alpha": alpha}), result(after))
    (experiment,) = (each for each in reproduction.EXPERIMENTS if each.grid == "alpha")
    text = reproduction.experiment_text(experiment, store)
    assert "| soda, alpha 0.0 | 50.0 | 182 |" in text and "mean of" not in text  # there is only contrast


def told(reproduction, first: float, second: float, keep: tuple[list[bool], list[bool]] | None = None) -> str:
    """What is said of a claim about two rows of 1,000 images."""
    rows = {}
    for place, (name, after) in enumerate({"a": first, "b": second}.items()):
        kept = {} if keep is None else {"right": {"after": np.packbits(keep[place]).tobytes().hex()}}
        rows[name] = [(Cell(method="soda", images=1000), {**result(after), **kept})]
    claim = reproduction.Claim("a beats b", "a", "b")
    return reproduction.verdict(claim, rows, {"a": first, "b": second}, ["gaussian_noise"], False)


def test_an_order_is_undecided_below_two_standard_errors(reproduction) -> None:
    # 350 of 1,000 answers differ, if nothing else is known: 18.7 more or less is one deviation
    assert "**undecided**, the difference is below 3.7" in told(reproduction, 53.6, 50.0)
    assert "**comes out**" in told(reproduction, 53.9, 50.0)
    assert "**does not come out**" in told(reproduction, 46.1, 50.0)


def test_runs_on_the_same_images_are_compared_one_by_one(reproduction) -> None:
    # 30 images are gained and 10 lost: 2 points; with one more each way a deviation of sqrt(0.042) / sqrt(1000) = 0.65
    better, worse = [True] * 530 + [False] * 470, [True] * 500 + [False] * 490 + [True] * 10
    assert "**comes out** (a 53.0, b 51.0)" in told(reproduction, 53.0, 51.0, (better, worse))
    assert "below 3.7" in told(reproduction, 53.0, 51.0)  # not knowing which images they were
    for gained, seen in ((5, "below 0.5 points"), (6, "comes out")):  # a sign test gives p = 0.06 and 0.03
        fewer = [True] * (530 - gained) + [False] * (470 + gained)
        assert seen in told(reproduction, 53.0, 53.0 - gained / 10, (better, fewer))
    assert "below 0.3 points" in told(reproduction, 53.0, 53.0, (better, better))


def test_an_image_counts_once_however_often_it_is_shown(reproduction) -> None:
    def row(flags: list[bool], shown: int) -> list:
        kept = {"right": {"after": np.packbits(flags).tobytes().hex()}}
        return [(Cell(method="soda", images=1000, seed=seed), kept) for seed in range(shown)]

    better, worse = [True] * 530 + [False] * 470, [True] * 500 + [False] * 490 + [True] * 10
    once, thrice = (reproduction.paired(row(better, n), row(worse, n)) for n in (1, 3))
    assert once == pytest.approx(thrice) and once[0] == pytest.approx(2.0)
    assert reproduction.paired(row(better, 1), row(worse, 3)) is None  # half of a grid: nothing is paired askew
    half = [(replace(cell, data="cifar100"), kept) for cell, kept in row(better, 1)]
    other = [(replace(cell, data="cifar100"), kept) for cell, kept in row(worse, 1)]
    two = reproduction.paired(row(better, 1) + half, row(worse, 1) + other)  # other images are new evidence
    assert two[1] == pytest.approx(once[1] / 2**0.5)


def test_a_store_that_is_absent_is_said_to_be(reproduction, tmp_path) -> None:
    assert set(reproduction.texts(tmp_path).values()) == {reproduction.NOTHING}
