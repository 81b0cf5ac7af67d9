import csv
import io

from soda_tta.bench import Cell, make_table, render


def results():
    for corruption, method, seed, after in [
        ("fog", "deployed", 0, 60.0),
        ("fog", "soda", 0, 70.0),
        ("fog", "soda", 1, 74.0),
        ("gaussian_noise", "deployed", 0, 20.0),
        ("gaussian_noise", "soda", 0, 50.0),
        ("gaussian_noise", "soda", 1, 52.0),
        ("snow", "deployed", 0, 30.0),
    ]:
        queries = 1.0 if method == "deployed" else 902.0
        yield Cell(method=method, corruption=corruption, seed=seed), {"after": after, "queries_an_image": queries}


def test_rows_follow_the_papers_order_and_the_mean_is_over_what_all_have() -> None:
    rows = make_table(results()).cells()
    assert rows[0] == ["corruption", "deployed", "soda"]
    assert [row[0] for row in rows[1:]] == ["gaussian noise", "snow", "fog", "mean of 2", "queries an image"]
    assert rows[1] == ["gaussian noise", "20.0", "51.0 ± 1.4"] and rows[2] == ["snow", "30.0", ""]
    assert rows[4] == ["mean of 2", "40.0", "61.5"] and rows[5] == ["queries an image", "1", "902"]


def test_the_three_formats_hold_the_same_numbers() -> None:
    table = make_table(results())
    assert list(csv.reader(io.StringIO(render(table, "csv")))) == table.cells()
    markdown, latex = render(table), render(table, "latex")
    assert "| fog | 60.0 | 72.0 ± 2.8 |" in markdown and "severity 5, 500 images" in markdown
    assert r"fog & 60.0 & 72.0 $\pm$ 2.8 \\" in latex and r"\toprule" in latex and r"\begin{tabular}{lrr}" in latex


def test_changed_numbers_make_another_column_but_scaling_alone_does_not() -> None:
    cells = [Cell(method="soda", numbers=numbers) for numbers in ({"epochs": 5, "lr": "auto"}, {"q": 10, "lr": 0.1})]
    table = make_table((cell, {"after": 1.0, "queries_an_image": 1.0}) for cell in cells)
    assert table.columns == ["soda (epochs=5, lr=auto)", "soda (q=10, lr=0.1)"]
    only = make_table([(cells[0], {"after": 1.0, "queries_an_image": 1.0})])
    assert only.columns == ["soda"] and "epochs 5, lr auto" in render(only)


def test_only_seeds_share_a_place() -> None:
    cells = [Cell(method="soda", images=n, data=d) for n in (50, 100) for d in ("cifar10", "cifar100")]
    table = make_table((cell, {"after": 1.0, "queries_an_image": 1.0}) for cell in cells)
    assert len(table.columns) == 4 and "soda (data=cifar100, images=50)" in table.columns
    assert all(len(values) == 1 for values in table.values.values())
