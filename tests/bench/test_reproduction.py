"""The page of measured tables: it is what the stores give, and its verdicts follow from the settings."""

from dataclasses import replace

import numpy as np
import pytest

from soda_tta.bench import GRIDS, Cell, Store, find_grid


@pytest.fixture(scope="module")
def reproduction(benchmark_script):
    return benchmark_script("reproduction")


def result(after: float) -> dict:
    return {"before": 20.0, "after": after, "queries_per_image": 182.0, "curve": [], "card": {}}


def test_the_page_is_what_the_stores_give(reproduction) -> None:
    page = reproduction.PAGE.read_text()
    assert reproduction.rendered(page) == page, "python benchmarks/reproduction.py"


def test_every_grid_but_the_taste_of_one_is_on_the_page_and_its_rows_are_cells_of_it(
    reproduction,
) -> None:
    assert {each.grid for each in reproduction.EXPERIMENTS} == set(GRIDS) - {"small"}
    for experiment in reproduction.EXPERIMENTS:
        cells = [cell for scale in ("desk", "paper") for cell in find_grid(experiment.grid, scale)]
        for row in experiment.rows:
            assert any(reproduction.belongs(cell, row) for cell in cells), (experiment.grid, row)
        names = {row.name for row in experiment.rows}
        assert len(names) == len(experiment.rows)
        assert all({claim.first, claim.second} <= names for claim in experiment.claims), (
            experiment.grid
        )


def test_a_table_its_verdicts_and_what_is_missing(reproduction, tmp_path) -> None:
    store = Store(tmp_path / "queries")
    for q, noise, contrast in ((2, 40.0, 60.0), (5, 40.5, 60.5), (20, 46.0, 66.0)):
        for corruption, after in (("gaussian_noise", noise), ("contrast", contrast)):
            store.add(Cell(method="soda", corruption=corruption, settings={"q": q}), result(after))
    (queries,) = (each for each in reproduction.EXPERIMENTS if each.grid == "queries")
    text = reproduction.experiment_text(queries, store)
    assert "| before | 20.0 | 20.0 | 20.0 | 1 |  |" in text
    assert "| soda, q 2 | 40.0 | 60.0 | 50.0 | 182 | 82.43 |" in text
    assert (
        "nearly as good as five: **no difference above 4.5 points** (soda, q 5 50.5, soda, q 2 50.0)"
        in text
    )
    assert "nothing over five: **differs** (soda, q 20 56.0, soda, q 5 50.5)" in text
    assert "better than any of them: not measured yet" in text
    assert "6 cells, 1 seed. cifar10, cifar10_resnet20, severity 5, 500 images." in text


def test_the_summary_counts_what_the_paper_says_and_shows_what_does_not_come_out(
    reproduction,
) -> None:
    found = dict.fromkeys((each.grid for each in reproduction.EXPERIMENTS), reproduction.NOTHING)
    assert reproduction.summary_text(found) == reproduction.NOTHING
    found["queries"] = (
        "- two directions are nearly as good as five: **differs** (soda, q 5 60.0, soda, q 2 50.0).\n"
        "- twenty bring nothing over five: **no difference above 2.3 points** (soda, q 20 61.0, soda, q 5 60.0).\n"
        "- the true gradient is better than any of them: not measured yet."
    )
    found["regularisation"] = (
        "- it harms SODA: **comes out** (a 3.0, b 2.0).\n"
        "- it helps SODA-R a little: **undecided**, the difference is below 3.1 points (a 3.0, b 2.0)."
    )
    found["alpha"] = (
        "- a larger one harms: **does not come out** (a 1.0, b 2.0)."  # ours: not of the paper
    )
    found["imagenet"] = "- and beats SODA: **does not come out** (a 1.0, b 2.0)."  # nor this
    first, _, _, *rows = reproduction.summary_text(found).removesuffix("\n").split("\n")
    assert first.startswith(
        "Of 4 things the paper says of these experiments 2 come out, 1 do not, and 1 are undecided"
    )
    assert rows[1:] == [
        "| [Number of directions](#number-of-directions) | two directions are nearly as good as five "
        "| soda, q 5 60.0, soda, q 2 50.0 | no |",
        "| [Norm of the perturbation](#norm-of-the-perturbation) | it helps SODA-R a little "
        "| a 3.0, b 2.0 | undecided |",
    ]


def test_every_section_the_summary_links_to_is_a_heading_of_the_page(reproduction) -> None:
    headings = {
        line.lstrip("# ")
        for line in reproduction.PAGE.read_text().splitlines()
        if line.startswith("#")
    }
    assert {each.title for each in reproduction.EXPERIMENTS} <= headings


def test_the_mean_is_over_the_corruptions_all_rows_have(reproduction, tmp_path) -> None:
    store = Store(tmp_path / "alpha")
    for alpha, corruption, after in (
        (0.0, "contrast", 50.0),
        (0.0, "gaussian_noise", 10.0),
        (1.0, "contrast", 70.0),
    ):
        store.add(
            Cell(method="soda", corruption=corruption, settings={"alpha": alpha}), result(after)
        )
    (experiment,) = (each for each in reproduction.EXPERIMENTS if each.grid == "alpha")
    text = reproduction.experiment_text(experiment, store)
    assert (
        "| soda, alpha 0.0 | 50.0 | 182 |" in text and "mean of" not in text
    )  # there is only contrast


def test_two_experiments_are_not_averaged_in_one_row_but_where_it_says_so(
    reproduction, tmp_path
) -> None:
    store = Store(tmp_path / "alpha")
    for sigma in (0.1, 1.0):
        store.add(Cell(method="soda", settings={"alpha": 1.0, "sigma": sigma}), result(50.0))
    (experiment,) = (each for each in reproduction.EXPERIMENTS if each.grid == "alpha")
    with pytest.raises(SystemExit, match=r"'soda, alpha 1.0' mixes experiments"):
        reproduction.experiment_text(experiment, store)
    store = Store(tmp_path / "selection")
    for rho, after in ((0.1, 40.0), (0.5, 50.0)):
        store.add(
            Cell(method="soda", settings={"tau": 0.1, "rho": rho, "alpha": 1e-4}), result(after)
        )
    (experiment,) = (each for each in reproduction.EXPERIMENTS if each.grid == "selection")
    assert "| tau 0.1, mean of the others | 45.0 | 182 |" in reproduction.experiment_text(
        experiment, store
    )
    store.add(
        Cell(method="soda", settings={"tau": 0.9, "rho": 0.1, "alpha": 1e-4}), result(60.0)
    )  # and no rho of 0.5
    assert "it hardly depends on tau: not measured yet" in reproduction.experiment_text(
        experiment, store
    )


def told(
    reproduction,
    first: float,
    second: float,
    keep: tuple[list[bool], list[bool]] | None = None,
    alike: bool = False,
) -> str:
    """What is said of a claim about two rows of 1,000 images."""
    rows = {}
    for place, (name, after) in enumerate({"a": first, "b": second}.items()):
        kept = (
            {} if keep is None else {"right": {"after": np.packbits(keep[place]).tobytes().hex()}}
        )
        rows[name] = [(Cell(method="soda", images=1000), {**result(after), **kept})]
    claim = reproduction.Claim("a beats b", "a", "b", alike)
    return reproduction.verdict(claim, rows, {"a": first, "b": second}, ["gaussian_noise"], False)


def test_an_order_is_undecided_below_two_standard_errors(reproduction) -> None:
    # 350 of 1,000 answers differ, if nothing else is known: 18.7 more or less is one deviation
    assert "**undecided**, the difference is below 3.7" in told(reproduction, 53.6, 50.0)
    assert "**comes out**" in told(reproduction, 53.9, 50.0)
    assert "**does not come out**" in told(reproduction, 46.1, 50.0)


def test_alike_is_said_only_where_a_large_difference_is_ruled_out(reproduction) -> None:
    assert "**no difference above 4.7 points**" in told(
        reproduction, 51.0, 50.0, alike=True
    )  # 1.0 and 3.7 of chance
    assert "**undecided**, a difference of 5.7 points is possible" in told(
        reproduction, 52.0, 50.0, alike=True
    )
    assert "**differs**" in told(reproduction, 54.0, 50.0, alike=True)


def test_runs_on_the_same_images_are_compared_one_by_one(reproduction) -> None:
    # 30 images are gained and 10 lost: 2 points; with one more each way a deviation of sqrt(0.042) / sqrt(1000) = 0.65
    better, worse = [True] * 530 + [False] * 470, [True] * 500 + [False] * 490 + [True] * 10
    assert "**comes out** (a 53.0, b 51.0)" in told(reproduction, 53.0, 51.0, (better, worse))
    assert "below 3.7" in told(reproduction, 53.0, 51.0)  # not knowing which images they were
    for gained, seen in (
        (5, "below 0.5 points"),
        (6, "comes out"),
    ):  # a sign test gives p = 0.06 and 0.03
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
    assert (
        reproduction.paired(row(better, 1), row(worse, 3)) is None
    )  # half of a grid: nothing is paired askew
    half = [(replace(cell, data="cifar100"), kept) for cell, kept in row(better, 1)]
    other = [(replace(cell, data="cifar100"), kept) for cell, kept in row(worse, 1)]
    two = reproduction.paired(
        row(better, 1) + half, row(worse, 1) + other
    )  # other images are new evidence
    assert two[1] == pytest.approx(once[1] / 2**0.5)


def test_a_store_that_is_absent_is_said_to_be(reproduction, tmp_path) -> None:
    assert set(reproduction.texts(tmp_path).values()) == {reproduction.NOTHING}
