"""The page of measured tables matches the stores, and its judgements follow from the numbers."""

from dataclasses import replace

import numpy as np
import pytest

from soda_tta.bench import GRIDS, Cell, CellResult, Store, find_grid


@pytest.fixture(scope="module")
def reproduction(benchmark_script):
    return benchmark_script("reproduction")


@pytest.fixture(scope="module")
def experiment_tables(benchmark_script):
    return benchmark_script("experiment_tables")


@pytest.fixture(scope="module")
def claims(benchmark_script):
    return benchmark_script("claims")


def result(after: float, flags: list[bool] | None = None) -> CellResult:
    """A result; `flags` are the images that were classified correctly."""
    correct = None if flags is None else {"after": np.packbits(flags).tobytes().hex()}
    return CellResult(before=20.0, after=after, queries_per_image=182.0, correct=correct)


def experiment_of(reproduction, grid: str):
    (experiment,) = (each for each in reproduction.EXPERIMENTS if each.grid == grid)
    return experiment


def test_the_page_matches_the_stores(reproduction) -> None:
    page = reproduction.PAGE.read_text()
    fresh = reproduction.replace_tables(page, reproduction.page_tables())
    assert fresh == page, "python benchmarks/reproduction.py"


OF_PEERS = ("peers-cifar10", "peers-imagenet")  # docs/research/peers.md has these


def test_every_grid_except_small_is_on_the_page_and_its_rows_are_cells_of_it(
    reproduction, experiment_tables
) -> None:
    assert {each.grid for each in reproduction.EXPERIMENTS} == set(GRIDS) - {"small", *OF_PEERS}
    for experiment in reproduction.EXPERIMENTS:
        cells = [cell for scale in ("desk", "paper") for cell in find_grid(experiment.grid, scale)]
        for row in experiment.rows:
            assert any(experiment_tables.belongs(cell, row) for cell in cells), (
                experiment.grid,
                row,
            )
        names = {row.name for row in experiment.rows}
        assert len(names) == len(experiment.rows)
        assert all({claim.first, claim.second} <= names for claim in experiment.claims), (
            experiment.grid
        )


def test_a_table_shows_judgements_and_what_is_missing(
    reproduction, experiment_tables, tmp_path
) -> None:
    store = Store(tmp_path / "queries")
    for q, noise, contrast in ((2, 40.0, 60.0), (5, 40.5, 60.5), (20, 46.0, 66.0)):
        for corruption, after in (("gaussian_noise", noise), ("contrast", contrast)):
            store.add(Cell(method="soda", corruption=corruption, settings={"q": q}), result(after))
    queries = experiment_of(reproduction, "queries")
    text = experiment_tables.describe_experiment(queries, store).text
    assert "| queries per image | paper (CIFAR-10-C) |" in text
    assert "| unadapted | 20.0 | 20.0 | 20.0 | 1 |  |" in text
    assert "| soda, q 2 | 40.0 | 60.0 | 50.0 | 182 | 82.43 |" in text
    assert (
        "nearly as good as five: **holds**, no difference above 4.5 points "
        "(soda, q 5 50.5, soda, q 2 50.0)" in text
    )
    assert (
        "twenty directions equal five: **does not hold**, the two differ "
        "(soda, q 20 56.0, soda, q 5 50.5)" in text
    )
    assert "better than any of them: not measured yet" in text
    assert "6 cells, 1 seed. cifar10, cifar10_resnet20, severity 5, 500 images." in text


def test_the_summary_counts_the_claims_of_the_paper_and_lists_those_that_do_not_hold(
    reproduction, claims
) -> None:
    assert reproduction.summary({}) == reproduction.NOT_RUN

    def judged(grid: str, *outcomes: str) -> tuple:
        made = experiment_of(reproduction, grid).claims
        return tuple(
            claims.Judgement(claim, outcome, "**...**", "a 3.0, b 2.0")
            for claim, outcome in zip(made, outcomes, strict=False)
        )

    imagenet = judged("imagenet", *["not measured"] * 4, "no")
    assert imagenet[-1].claim.additional  # our claim about an experiment of the paper
    judgements = {
        "queries": judged("queries", "no", "yes", "not measured"),
        "regularisation": judged("regularisation", "yes", "undecided"),
        "alpha": judged("alpha", "yes", "no"),  # an experiment that the paper does not have
        "imagenet": imagenet,
    }
    first, _, _, *rows = reproduction.summary(judgements).split("\n")
    assert first.startswith(
        "Of 4 claims that the paper makes about these experiments, 2 hold here, 1 do not hold "
        "and 1 are undecided."
    )
    assert rows[1:] == [
        "| [Number of directions](#number-of-directions) "
        "| two directions are nearly as good as five | a 3.0, b 2.0 | no |",
        "| [Norm of the perturbation](#norm-of-the-perturbation) "
        "| the norm makes SODA-R a little better | a 3.0, b 2.0 | undecided |",
    ]


def test_every_section_that_the_summary_links_to_is_a_heading_of_the_page(reproduction) -> None:
    lines = reproduction.PAGE.read_text().splitlines()
    headings = {line.lstrip("# ") for line in lines if line.startswith("#")}
    assert {each.title for each in reproduction.EXPERIMENTS} <= headings


def test_the_mean_is_over_the_corruptions_that_all_rows_have(
    reproduction, experiment_tables, tmp_path
) -> None:
    store = Store(tmp_path / "alpha")
    for alpha, corruption, after in (
        (0.0, "contrast", 50.0),
        (0.0, "gaussian_noise", 10.0),
        (1.0, "contrast", 70.0),
    ):
        cell = Cell(method="soda", corruption=corruption, settings={"alpha": alpha})
        store.add(cell, result(after))
    experiment = experiment_of(reproduction, "alpha")
    text = experiment_tables.describe_experiment(experiment, store).text
    assert "| soda, alpha 0.0 | 50.0 | 182 |" in text
    assert "mean of" not in text  # contrast is the only shared corruption


def test_two_experiments_are_averaged_in_one_row_only_where_it_says_so(
    reproduction, experiment_tables, tmp_path
) -> None:
    store = Store(tmp_path / "alpha")
    for sigma in (0.1, 1.0):
        store.add(Cell(method="soda", settings={"alpha": 1.0, "sigma": sigma}), result(50.0))
    with pytest.raises(SystemExit, match=r"'soda, alpha 1.0' mixes experiments"):
        experiment_tables.describe_experiment(experiment_of(reproduction, "alpha"), store)
    store = Store(tmp_path / "selection")
    for rho, after in ((0.1, 40.0), (0.5, 50.0)):
        settings = {"tau": 0.1, "rho": rho, "alpha": 1e-4}
        store.add(Cell(method="soda", settings=settings), result(after))
    selection = experiment_of(reproduction, "selection")
    text = experiment_tables.describe_experiment(selection, store).text
    assert "| tau 0.1, mean over the rest | 45.0 | 182 |" in text
    # tau 0.9 has no cell with a rho of 0.5, so the two means are not comparable
    settings = {"tau": 0.9, "rho": 0.1, "alpha": 1e-4}
    store.add(Cell(method="soda", settings=settings), result(60.0))
    text = experiment_tables.describe_experiment(selection, store).text
    assert "accuracy hardly depends on tau: not measured yet" in text


def judgement(
    claims,
    first: float,
    second: float,
    flags: tuple[list[bool], list[bool]] | None = None,
    equal: bool = False,
) -> str:
    """What the page says of a claim about two rows of 1,000 images."""
    rows = {}
    for place, (name, after) in enumerate({"a": first, "b": second}.items()):
        own_flags = None if flags is None else flags[place]
        rows[name] = [(Cell(method="soda", images=1000), result(after, own_flags))]
    claim = claims.Claim("a is better than b", "a", "b", equal)
    means = {"a": first, "b": second}
    return str(claims.judge_claim(claim, rows, means, ["gaussian_noise"], False))


def test_an_order_is_undecided_below_two_standard_errors(claims) -> None:
    # 350 of 1,000 predictions are assumed to differ: one standard deviation is 18.7 images
    assert "**undecided**, the difference is below 3.7" in judgement(claims, 53.6, 50.0)
    assert "**holds** (" in judgement(claims, 53.9, 50.0)
    assert "**does not hold** (" in judgement(claims, 46.1, 50.0)


def test_equality_is_stated_only_where_a_large_difference_is_ruled_out(claims) -> None:
    # 1.0 measured and 3.7 from chance
    assert "**holds**, no difference above 4.7 points" in judgement(claims, 51.0, 50.0, equal=True)
    undecided = judgement(claims, 52.0, 50.0, equal=True)
    assert "**undecided**, a difference of 5.7 points is possible" in undecided
    differs = judgement(claims, 54.0, 50.0, equal=True)
    assert "**does not hold**, the two differ" in differs


def test_runs_on_the_same_images_are_compared_image_by_image(claims) -> None:
    # 30 images are gained and 10 lost: 2 points. With one more of each the standard error is
    # sqrt(0.042) / sqrt(1000) = 0.65 points.
    better = [True] * 530 + [False] * 470
    worse = [True] * 500 + [False] * 490 + [True] * 10
    assert "**holds** (a 53.0, b 51.0)" in judgement(claims, 53.0, 51.0, (better, worse))
    assert "below 3.7" in judgement(claims, 53.0, 51.0)  # without the predictions
    # a sign test gives p = 0.06 and 0.03
    for gained, expected in ((5, "below 0.5 points"), (6, "**holds**")):
        fewer = [True] * (530 - gained) + [False] * (470 + gained)
        assert expected in judgement(claims, 53.0, 53.0 - gained / 10, (better, fewer))
    assert "below 0.3 points" in judgement(claims, 53.0, 53.0, (better, better))


def test_an_image_counts_once_however_often_it_is_shown(claims) -> None:
    def row(flags: list[bool], seeds: int) -> list:
        cells = [Cell(method="soda", images=1000, seed=seed) for seed in range(seeds)]
        return [(cell, result(0.0, flags)) for cell in cells]

    better = [True] * 530 + [False] * 470
    worse = [True] * 500 + [False] * 490 + [True] * 10
    once = claims.compare_images(row(better, 1), row(worse, 1))
    three_times = claims.compare_images(row(better, 3), row(worse, 3))
    assert once == pytest.approx(three_times)
    assert once[0] == pytest.approx(2.0)
    # an unfinished grid: rows with different inputs are not paired
    assert claims.compare_images(row(better, 1), row(worse, 3)) is None
    # other images are new evidence
    other_better = [(replace(cell, data="cifar100"), kept) for cell, kept in row(better, 1)]
    other_worse = [(replace(cell, data="cifar100"), kept) for cell, kept in row(worse, 1)]
    both = claims.compare_images(row(better, 1) + other_better, row(worse, 1) + other_worse)
    assert both[1] == pytest.approx(once[1] / 2**0.5)


def test_a_missing_store_is_reported_as_not_run(reproduction, tmp_path) -> None:
    assert set(reproduction.page_tables(tmp_path).values()) == {reproduction.NOT_RUN}
