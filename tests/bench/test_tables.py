"""Tables: rows, columns and their names, means, and the protocol line."""

import csv
import io
from dataclasses import replace

import pytest

from soda_tta.bench import Cell, CellResult, make_table, render
from soda_tta.bench.columns import in_order

RESULT = CellResult(before=1.0, after=1.0, queries_per_image=1.0)


def entries():
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
        result = CellResult(before=20.0, after=after, queries_per_image=queries)
        yield Cell(method=method, corruption=corruption, seed=seed), result


def test_rows_have_the_papers_order_and_the_mean_is_over_complete_rows() -> None:
    assert make_table(entries()).cells() == [
        ["corruption", "deployed", "soda"],
        ["gaussian noise", "20.0", "51.0 ± 1.4"],
        ["snow", "30.0", ""],
        ["fog", "60.0", "72.0 ± 2.8"],
        ["mean of 2", "40.0", "61.5"],
        ["queries per image", "1", "902"],
    ]


def test_columns_are_ordered_as_the_methods_are_listed() -> None:
    cells = [Cell(method=method) for method in ("mine:own", "a:own", "bn", "deployed")]
    cells += [Cell(method="soda", settings={"q": q}) for q in (10, 2, "many")]
    columns = ["deployed", "soda (q=2)", "soda (q=10)", "soda (q=many)", "bn", "a:own", "mine:own"]
    assert make_table(in_order((cell, RESULT) for cell in cells)).columns == columns


def test_a_method_that_its_budget_ended_is_named_below_the_table() -> None:
    cells = [
        Cell(method=method, corruption=corruption, budget=5)
        for method in ("soda", "lame")
        for corruption in ("fog", "snow")
    ]
    stopped = ["budget", "finished", "finished", "finished"]
    results = [replace(RESULT, stopped=reason) for reason in stopped]
    table = make_table(zip(cells, results, strict=True))
    assert "; ended by its budget (soda). Accuracy" in render(table)


def test_columns_of_several_budgets_name_them() -> None:
    table = make_table([(Cell(method="soda", budget=budget), RESULT) for budget in (None, 5)])
    assert table.columns == ["soda (no budget)", "soda (budget=5)"]


def test_the_three_formats_hold_the_same_numbers() -> None:
    table = make_table(entries())
    rows = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert [row["corruption"] for row in rows] == [
        "gaussian_noise",
        "snow",
        "fog",
        "mean of 2",
        "queries per image",
    ]
    assert rows[0]["soda"] == "51.000"
    assert rows[0]["soda deviation"] == "1.414"  # of 50 and 52
    assert rows[0]["deployed deviation"] == ""
    assert rows[1]["soda"] == ""
    assert rows[3]["soda"] == "61.500"
    markdown = render(table)
    assert "| fog | 60.0 | 72.0 ± 2.8 |" in markdown
    assert "severity 5, 500 images" in markdown
    latex = render(table, "latex")
    assert r"fog & 60.0 & 72.0 $\pm$ 2.8 \\" in latex
    assert r"\toprule" in latex
    assert r"\begin{tabular}{lrr}" in latex


def test_changed_settings_make_another_column_but_scaling_alone_does_not() -> None:
    settings = ({"epochs": 5, "lr": "auto"}, {"q": 10, "lr": 0.1})
    cells = [Cell(method="soda", settings=each) for each in settings]
    table = make_table((cell, RESULT) for cell in cells)
    assert table.columns == ["soda (epochs=5, lr=auto)", "soda (lr=0.1, q=10)"]
    single = make_table([(cells[0], RESULT)])
    assert single.columns == ["soda"]
    assert "epochs 5, lr auto" in render(single)


def test_only_seeds_share_a_place() -> None:
    cells = [
        Cell(method="soda", images=images, data=data)
        for images in (50, 100)
        for data in ("cifar10", "cifar100")
    ]
    table = make_table((cell, RESULT) for cell in cells)
    assert len(table.columns) == 4
    assert "soda (data=cifar100, images=50)" in table.columns
    assert all(len(values) == 1 for values in table.values.values())


def test_domains_are_rows_if_nothing_is_corrupted() -> None:
    cells = [
        Cell(method="deployed", data=f"pacs/{domain}", corruption="clean")
        for domain in ("sketch", "cartoon")
    ]
    rows = make_table((cell, RESULT) for cell in cells).cells()
    assert [row[0] for row in rows[:3]] == ["data", "pacs/sketch", "pacs/cartoon"]
    assert rows[0][1:] == ["deployed"]


def test_a_setting_has_one_column_under_either_name_and_in_any_order() -> None:
    settings = [{"q": 2, "mu": 0.1}, {"mu": 0.1, "directions": 2}]
    seeds = [
        (Cell(method="soda", seed=seed, settings=each), RESULT)
        for seed, each in enumerate(settings)
    ]
    assert make_table(seeds).columns == ["soda (mu=0.1, q=2)"]
    twice = [(replace(cell, seed=0), result) for cell, result in seeds]  # not a second seed
    facts = make_table(twice).facts()
    assert facts["rows"]["gaussian_noise"]["soda (mu=0.1, q=2)"]["seeds"] == 1


def test_an_experiment_that_is_stored_twice_counts_once() -> None:
    settings = [{}, {"q": 5}]  # five is the default
    cells = [Cell(method="soda", settings=each) for each in settings]
    facts = make_table((cell, RESULT) for cell in cells).facts()
    assert facts["columns"] == ["soda"]
    assert facts["rows"]["gaussian_noise"]["soda"]["seeds"] == 1


def test_a_default_setting_has_no_column_of_its_own() -> None:
    settings = [{"q": 5}, {}, {"q": 10}, {"mu": 0.001, "q": 10}]
    cells = [
        Cell(method="soda", corruption=corruption, settings=each)
        for corruption, each in zip(["fog", "snow"] * 2, settings, strict=True)
    ]
    table = make_table((cell, RESULT) for cell in cells)
    assert table.columns == ["soda", "soda (q=10)"]
    assert len(table.values) == 4


def test_two_ablations_in_one_store_share_the_default_column() -> None:
    settings = [{"alpha": 1e-4}, {"alpha": 1e-2}, {"rho": 0.9}, {"rho": 0.1}]
    table = make_table((Cell(method="soda", settings=each), RESULT) for each in settings)
    assert table.columns == ["soda", "soda (alpha=0.01)", "soda (rho=0.1)"]


def test_an_ablation_states_the_default_that_it_varies() -> None:
    cells = [Cell(method="soda", settings={"q": q}) for q in (5, 10)]
    table = make_table((cell, RESULT) for cell in cells)
    assert table.columns == ["soda (q=5)", "soda (q=10)"]


def test_clean_images_are_shown_but_not_averaged() -> None:
    clean = (Cell(method="soda", corruption="clean"), replace(RESULT, after=90.0))
    fog = (Cell(method="soda", corruption="fog"), replace(RESULT, after=40.0))
    facts = make_table([fog, clean]).facts()
    assert facts["averaged"] == ["fog"]
    assert facts["mean"] == {"soda": 40.0}
    assert facts["rows"]["clean"]["soda"]["accuracy"] == 90.0
    assert make_table([clean]).facts()["mean"] == {"soda": 90.0}


def test_the_facts_of_a_table_are_numbers() -> None:
    facts = make_table(entries()).facts()
    assert facts["rows"]["fog"]["soda"] == {
        "accuracy": 72.0,
        "deviation": pytest.approx(2.828, abs=1e-3),
        "seeds": 2,
    }
    assert facts["rows"]["snow"] == {"deployed": {"accuracy": 30.0, "deviation": None, "seeds": 1}}
    assert facts["mean"]["soda"] == 61.5
    assert facts["queries_per_image"]["soda"] == 902.0
    assert facts["columns"] == ["deployed", "soda"]
    shared = make_table(entries()).protocol_text().split(", ")
    assert facts["protocol"] == {"deployed": shared, "soda": shared}


def test_the_protocol_states_what_is_shared_once_and_the_rest_by_column() -> None:
    settings = {
        "deployed": {},
        "soda": {"epochs": 30, "lr": 0.03},
        "da-pl": {"lr": 0.03, "epochs": 30},
    }
    cells = [Cell(method=name, images=1000, settings=each) for name, each in settings.items()]
    table = make_table([(cell, RESULT) for cell in cells])
    assert table.columns == list(settings)
    shared = "cifar10, cifar10_resnet20, severity 5, 1,000 images"
    assert table.protocol_text() == f"{shared}; epochs 30, lr 0.03 (soda, da-pl)"


def test_the_protocol_does_not_repeat_what_a_column_name_states() -> None:
    rates = [
        Cell(method="soda", corruption=corruption, settings={"epochs": 3, "lr": rate})
        for corruption in ("fog", "clean")
        for rate in (1, 2)
    ]
    table = make_table([(cell, RESULT) for cell in rates])
    assert table.columns == ["soda (lr=1)", "soda (lr=2)"]
    assert table.protocol_text() == "cifar10, cifar10_resnet20, severity 5, 500 images, epochs 3"


def test_the_protocol_states_the_initial_network_of_local_models() -> None:
    networks = [
        ("dine", {}, "resnet20-random"),
        ("dine", {"target": "cifar100_resnet20"}, "cifar100_resnet20"),
        ("beta", {}, "resnet20-random"),
    ]
    table = make_table(
        (
            Cell(method=method, settings=settings),
            replace(RESULT, card={"settings": {"target": target}}),
        )
        for method, settings, target in networks
    )
    assert table.columns == ["dine", "dine (target=cifar100_resnet20)", "beta"]
    assert table.protocol_text().endswith("500 images; target resnet20-random (dine, beta)")


def test_a_table_may_be_empty() -> None:
    table = make_table([])
    assert table.protocol_text() == ""
    assert "queries per image" in render(table)


def test_clean_images_are_repeated_for_every_severity() -> None:
    cells = [("fog", 1, 80.0), ("fog", 3, 60.0), ("clean", 5, 90.0)]
    several = [
        (
            Cell(method="soda", corruption=corruption, severity=severity),
            replace(RESULT, after=after),
        )
        for corruption, severity, after in cells
    ]
    facts = make_table(several).facts()
    assert facts["columns"] == ["soda (severity=1)", "soda (severity=3)"]
    assert [each["accuracy"] for each in facts["rows"]["clean"].values()] == [90.0, 90.0]
    assert facts["mean"] == {"soda (severity=1)": 80.0, "soda (severity=3)": 60.0}
    assert make_table(several[1:]).columns == ["soda"]  # one severity makes no difference
