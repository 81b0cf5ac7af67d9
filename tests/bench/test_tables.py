import csv
import io
from dataclasses import replace

import pytest

from soda_tta.bench import Cell, make_table, render
from soda_tta.bench.tables import in_order

RESULT = {"after": 1.0, "queries_per_image": 1.0}


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
        yield (
            Cell(method=method, corruption=corruption, seed=seed),
            {"after": after, "queries_per_image": queries},
        )


def test_rows_follow_the_papers_order_and_the_mean_is_over_what_all_have() -> None:
    rows = make_table(results()).cells()
    assert rows[0] == ["corruption", "deployed", "soda"]
    assert [row[0] for row in rows[1:]] == [
        "gaussian noise",
        "snow",
        "fog",
        "mean of 2",
        "queries an image",
    ]
    assert rows[1] == ["gaussian noise", "20.0", "51.0 ± 1.4"] and rows[2] == ["snow", "30.0", ""]
    assert rows[4] == ["mean of 2", "40.0", "61.5"] and rows[5] == ["queries an image", "1", "902"]


def test_columns_stand_as_methods_are_listed_whichever_cell_ended_first() -> None:
    cells = [Cell(method=method) for method in ("mine:own", "a:own", "bn", "deployed")]
    cells += [Cell(method="soda", settings={"q": q}) for q in (10, 2, "many")]
    want = ["deployed", "soda (q=2)", "soda (q=10)", "soda (q=many)", "bn", "a:own", "mine:own"]
    assert make_table(in_order((cell, RESULT) for cell in cells)).columns == want


def test_a_method_that_its_budget_ended_is_told_below_the_table() -> None:
    cells = [
        Cell(method=m, corruption=c, budget=5) for m in ("soda", "lame") for c in ("fog", "snow")
    ]
    ends = [
        (cell, {**RESULT, "stopped": "budget" if number == 0 else "finished"})
        for number, cell in enumerate(cells)
    ]
    assert "; ended by its budget (soda). Accuracy" in render(make_table(ends))
    assert make_table([(Cell(method="soda", budget=b), RESULT) for b in (None, 5)]).columns == [
        "soda (no budget)",
        "soda (budget=5)",
    ]


def test_the_three_formats_hold_the_same_numbers() -> None:
    table = make_table(results())
    rows = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert [row["corruption"] for row in rows] == [
        "gaussian_noise",
        "snow",
        "fog",
        "mean of 2",
        "queries an image",
    ]
    assert rows[0]["soda"] == "51.000" and rows[0]["soda deviation"] == "1.414"  # of 50 and 52
    assert rows[0]["deployed deviation"] == rows[1]["soda"] == "" and rows[3]["soda"] == "61.500"
    markdown, latex = render(table), render(table, "latex")
    assert "| fog | 60.0 | 72.0 ± 2.8 |" in markdown and "severity 5, 500 images" in markdown
    assert (
        r"fog & 60.0 & 72.0 $\pm$ 2.8 \\" in latex
        and r"\toprule" in latex
        and r"\begin{tabular}{lrr}" in latex
    )


def test_changed_numbers_make_another_column_but_scaling_alone_does_not() -> None:
    cells = [
        Cell(method="soda", settings=settings)
        for settings in ({"epochs": 5, "lr": "auto"}, {"q": 10, "lr": 0.1})
    ]
    table = make_table((cell, {"after": 1.0, "queries_per_image": 1.0}) for cell in cells)
    assert table.columns == ["soda (epochs=5, lr=auto)", "soda (lr=0.1, q=10)"]
    only = make_table([(cells[0], {"after": 1.0, "queries_per_image": 1.0})])
    assert only.columns == ["soda"] and "epochs 5, lr auto" in render(only)


def test_only_seeds_share_a_place() -> None:
    cells = [
        Cell(method="soda", images=n, data=d) for n in (50, 100) for d in ("cifar10", "cifar100")
    ]
    table = make_table((cell, {"after": 1.0, "queries_per_image": 1.0}) for cell in cells)
    assert len(table.columns) == 4 and "soda (data=cifar100, images=50)" in table.columns
    assert all(len(values) == 1 for values in table.values.values())


def test_domains_are_rows_where_nothing_is_corrupted() -> None:
    cells = [
        Cell(method="deployed", data=f"pacs/{domain}", corruption="clean")
        for domain in ("sketch", "cartoon")
    ]
    rows = make_table((cell, {"after": 1.0, "queries_per_image": 1.0}) for cell in cells).cells()
    assert [row[0] for row in rows[:3]] == ["data", "pacs/sketch", "pacs/cartoon"] and rows[0][
        1:
    ] == ["deployed"]


def test_a_number_has_one_column_whichever_of_its_names_and_orders_it_was_given_in() -> None:
    settings = [{"q": 2, "mu": 0.1}, {"mu": 0.1, "directions": 2}]
    entries = [
        (Cell(method="soda", seed=seed, settings=each), RESULT)
        for seed, each in enumerate(settings)
    ]
    assert make_table(entries).columns == ["soda (mu=0.1, q=2)"]
    twice = [(replace(cell, seed=0), result) for cell, result in entries]  # is no second seed
    assert make_table(twice).facts()["rows"]["gaussian_noise"]["soda (mu=0.1, q=2)"]["seeds"] == 1


def test_a_number_that_is_the_methods_own_makes_no_column_of_its_own() -> None:
    put = [{"q": 5}, {}, {"q": 10}, {"mu": 0.001, "q": 10}]
    cells = [
        Cell(method="soda", corruption=c, settings=n)
        for c, n in zip(["fog", "snow"] * 2, put, strict=True)
    ]
    table = make_table((cell, RESULT) for cell in cells)
    assert table.columns == ["soda", "soda (q=10)"] and len(table.values) == 4
    two = [
        {"alpha": 1e-4},
        {"alpha": 1e-2},
        {"rho": 0.9},
        {"rho": 0.1},
    ]  # two ablations in one store
    both = make_table((Cell(method="soda", settings=settings), RESULT) for settings in two)
    assert both.columns == ["soda", "soda (alpha=0.01)", "soda (rho=0.1)"]
    alone = make_table([(cells[0], RESULT), (replace(cells[2], corruption="fog"), RESULT)])
    assert alone.columns == ["soda (q=5)", "soda (q=10)"]  # an ablation says what it varies


def test_clean_images_are_shown_and_not_averaged() -> None:
    entries = [
        (Cell(method="soda", corruption=c), {**RESULT, "after": a})
        for c, a in (("fog", 40.0), ("clean", 90.0))
    ]
    facts = make_table(entries).facts()
    assert facts["averaged"] == ["fog"] and facts["mean"] == {"soda": 40.0}
    assert facts["rows"]["clean"]["soda"]["accuracy"] == 90.0
    assert make_table(entries[1:]).facts()["mean"] == {"soda": 90.0}


def test_for_programs_a_table_is_numbers() -> None:
    facts = make_table(results()).facts()
    assert facts["rows"]["fog"]["soda"] == {
        "accuracy": 72.0,
        "deviation": pytest.approx(2.828, abs=1e-3),
        "seeds": 2,
    }
    assert facts["rows"]["snow"] == {"deployed": {"accuracy": 30.0, "deviation": None, "seeds": 1}}
    assert facts["mean"]["soda"] == 61.5 and facts["queries_per_image"]["soda"] == 902.0
    assert facts["columns"] == ["deployed", "soda"]
    assert (
        facts["protocol"]["soda"]
        == facts["protocol"]["deployed"]
        == make_table(results()).told().split(", ")
    )


def test_the_protocol_says_once_what_is_shared_and_by_column_what_is_not() -> None:
    settings = {
        "deployed": {},
        "soda": {"epochs": 30, "lr": 0.03},
        "da-pl": {"lr": 0.03, "epochs": 30},
    }
    cells = [Cell(method=m, images=1000, settings=n) for m, n in settings.items()]
    table = make_table([(cell, RESULT) for cell in cells])
    assert table.columns == list(settings)
    assert (
        table.told()
        == "cifar10, cifar10_resnet20, severity 5, 1,000 images; epochs 30, lr 0.03 (soda, da-pl)"
    )
    rates = [
        Cell(method="soda", corruption=c, settings={"epochs": 3, "lr": r})
        for c in ("fog", "clean")
        for r in (1, 2)
    ]
    table = make_table([(cell, RESULT) for cell in rates])
    assert table.columns == ["soda (lr=1)", "soda (lr=2)"]  # what a name tells is not told again
    assert table.told() == "cifar10, cifar10_resnet20, severity 5, 500 images, epochs 3"


def test_a_table_says_what_local_networks_begin_from() -> None:
    entries = [
        (
            Cell(method=method, settings=settings),
            {**RESULT, "card": {"settings": {"target": target}}},
        )
        for method, settings, target in (
            ("dine", {}, "resnet20-random"),
            ("dine", {"target": "cifar100_resnet20"}, "cifar100_resnet20"),
            ("beta", {}, "resnet20-random"),
        )
    ]
    table = make_table(entries)
    assert table.columns == ["dine", "dine (target=cifar100_resnet20)", "beta"]
    assert table.told().endswith("500 images; target resnet20-random (dine, beta)")


def test_a_table_of_nothing_is_a_table() -> None:
    assert make_table([]).told() == "" and "queries an image" in render(make_table([]))


def test_clean_images_stand_beside_every_severity() -> None:
    places = [("fog", 1, 80.0), ("fog", 3, 60.0), ("clean", 5, 90.0)]
    entries = [
        (Cell(method="soda", corruption=c, severity=s), {**RESULT, "after": a})
        for c, s, a in places
    ]
    facts = make_table(entries).facts()
    assert facts["columns"] == ["soda (severity=1)", "soda (severity=3)"]
    assert [each["accuracy"] for each in facts["rows"]["clean"].values()] == [90.0, 90.0]
    assert facts["mean"] == {"soda (severity=1)": 80.0, "soda (severity=3)": 60.0}
    assert make_table(entries[1:]).columns == ["soda"]  # one severity is no difference
