"""Grids from TOML files: combinations, and which method gets which settings."""

import json

import pytest

from soda_tta.bench import find_grid
from soda_tta.cli import main
from soda_tta.errors import MethodError


def settings_by_method(path, table: str) -> dict[str, list[dict]]:
    """The settings of every cell of a grid with one table, by method."""
    path.write_text(f"[[cells]]\n{table}\n")
    by_method: dict[str, list[dict]] = {}
    for cell in find_grid(str(path)):
        cell.check()
        by_method.setdefault(cell.method, []).append(cell.settings)
    return by_method


def test_a_grid_is_every_combination_of_its_lists(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[cells]]\nmethod = ["soda", "deployed"]\ncorruption = ["fog", "clean"]\n'
        "seed = [0, 1]\nimages = 50\nsettings = { epochs = 2, lr = 0.1 }\n"
    )
    cells = find_grid(str(path))
    assert len(cells) == 8
    assert {cell.images for cell in cells} == {50}
    for cell in cells:
        assert cell.settings == ({"epochs": 2, "lr": 0.1} if cell.method == "soda" else {})


def test_lists_inside_settings_are_combined_too(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[cells]]\nmethod = ["soda", "deployed"]\n'
        "settings = { epochs = [2, 3], lr = [0.1, 0.2], q = 1 }\n"
        '[[cells]]\nmethod = "soda-o"\nsettings = { queue = [0, 500] }\n'
    )
    cells = find_grid(str(path))
    assert [cell.method for cell in cells].count("deployed") == 1
    soda = [cell.settings for cell in cells if cell.method == "soda"]
    assert soda == [
        {"epochs": epochs, "lr": lr, "directions": 1} for epochs in (2, 3) for lr in (0.1, 0.2)
    ]
    online = [cell.settings for cell in cells if cell.method == "soda-o"]
    assert online == [{"queue": 0}, {"queue": 500}]


def test_each_method_that_learns_gets_the_settings_it_has(tmp_path, recwarn) -> None:
    learning = ["soda", "da-pgd", "da-zoo-input", "ma-so", "soda-o", "soda-office-home"]
    yardsticks = ["deployed", "lame", "bn", "tent", "soda-e"]
    table = f"method = {learning + yardsticks}\nsettings = {{ epochs = 2, lr = 0.01 }}"
    settings = settings_by_method(tmp_path / "mine.toml", table)
    assert all(settings[method] == [{"epochs": 2, "lr": 0.01}] for method in learning)
    assert all(settings[method] == [{}] for method in yardsticks)
    assert not recwarn.list


def test_a_method_without_a_setting_runs_once_with_a_warning(tmp_path) -> None:
    table = "method = ['soda', 'soda-fo', 'dine']\nsettings = { epochs = 2, q = [2, 5] }"
    with pytest.warns(UserWarning) as warned:
        settings = settings_by_method(tmp_path / "mine.toml", table)
    assert settings["soda"] == [{"epochs": 2, "directions": 2}, {"epochs": 2, "directions": 5}]
    assert settings["soda-fo"] == settings["dine"] == [{"epochs": 2}]
    assert sorted(str(each.message) for each in warned) == [
        "dine has no setting q and runs without it.",
        "soda-fo has no setting q and runs without it.",
    ]


def test_a_method_with_none_of_the_settings_is_warned_about_too(tmp_path) -> None:
    table = "method = ['soda', 'dine']\nsettings = { q = 2 }"
    with pytest.warns(UserWarning, match="dine has no setting q and runs without it"):
        assert settings_by_method(tmp_path / "mine.toml", table)["dine"] == [{}]


def test_another_part_brings_its_own_settings(tmp_path) -> None:
    table = (
        "method = ['deployed', 'soda']\n"
        "settings = { search = 'evolution', population = 8, adaptor = 'bank' }"
    )
    assert settings_by_method(tmp_path / "mine.toml", table)["soda"] == [
        {"search": "evolution", "population": 8, "adaptor": "bank"}
    ]


@pytest.mark.parametrize(
    "table",
    [
        "method = { a = 1 }\nsettings = { q = 2 }",
        "method = [['soda'], 'dine']\nsettings = { q = 2 }",
        "method = [1, 2]\nsettings = { q = 2 }",
        "method = ['soda', 'da-pl']\nsettings = { search = [['evolution']] }",
        "method = ['soda', 'da-pgd']\nsettings = { lr = 'auto' }",
    ],
)
def test_impossible_methods_and_values_are_refused(tmp_path, table: str) -> None:
    with pytest.raises(MethodError, match=r"must be a name|is unknown|lr=auto is not valid"):
        settings_by_method(tmp_path / "mine.toml", table)


@pytest.mark.parametrize("method", ["'dine'", "['dine']", "['dine', 'dine']"])
def test_a_list_of_one_method_is_that_method(tmp_path, method: str) -> None:
    with pytest.raises(MethodError, match=r"dine has no setting 'lr'"):
        settings_by_method(tmp_path / "mine.toml", f"method = {method}\nsettings = {{ lr = 0.1 }}")


def test_users_methods_get_the_settings_they_have_too(tmp_path, monkeypatch) -> None:
    (tmp_path / "own_settings.py").write_text(
        "from dataclasses import dataclass\n"
        "from soda_tta.methods import Method, all_methods\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Sharper(Method):\n"
        "    power: float = 2.0\n"
        "sharper = Sharper(name='sharper', summary='', needs='probabilities')\n"
        "quick = all_methods()['soda'].but(epochs=1).renamed('quick', '')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    table = "method = ['deployed', 'own_settings:sharper']\nsettings = { power = [2, 3] }"
    settings = settings_by_method(tmp_path / "mine.toml", table)
    assert settings == {"deployed": [{}], "own_settings:sharper": [{"power": 2}, {"power": 3}]}
    table = "method = ['soda', 'own_settings:quick']\nsettings = { epochs = 5 }"
    settings = settings_by_method(tmp_path / "mine.toml", table)
    assert settings["own_settings:quick"] == [{"epochs": 5}]


def test_known_data_selects_its_model_and_clean_images_have_one_severity(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[cells]]\nmethod = "soda"\ncorruption = ["fog", "clean"]\nseverity = [3, 5]\n'
        'data = "cifar100"\n'
        '[[cells]]\nmethod = "deployed"\ncorruption = "clean"\ndata = ["pacs/sketch", "CIFAR-10"]\n'
    )
    cells = find_grid(str(path))
    places = sorted((cell.corruption, cell.severity) for cell in cells[:3])
    assert places == [("clean", 5), ("fog", 3), ("fog", 5)]
    models = ["cifar100_resnet20"] * 3 + ["pacs_photo_lite0", "cifar10_resnet20"]
    assert [cell.model for cell in cells] == models


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[[cells]]\nmethd = 'soda'\n", "method is missing"),
        ("[[cells]]\nmethod = 'soda'\nnumbers = { q = 2 }\n", "numbers is unknown"),
        ("cells = 3 =", "not a grid"),
        ("[grid]\n", "not a grid"),
        ("[[cells]]\nmethod = []\n", "has no cells"),
        (
            "[[cells]]\nmethod = 'soda'\ndata = 'my/images'\n",
            "choose one of cifar10, .* or the path",
        ),
        ("[[cells]]\nmethod = 'soda'\ndata = '/'\n", "set model"),
        (
            "[[cells]]\nmethod = ['soda', 'dine']\nsettings = { topc = 0 }\n",
            "none of soda, dine has a setting 'topc'",
        ),
        (
            "[[cells]]\nmethod = ['bn', 'deployed']\nsettings = { epochs = 2 }\n",
            "none of bn, deployed has",
        ),
        ("[[cells]]\nmethod = 'soda'\ndata = 'office-home/Art'\n", "set model"),
    ],
)
def test_a_file_that_is_not_a_grid_is_refused(tmp_path, content: str, message: str) -> None:
    (tmp_path / "bad.toml").write_text(content)
    with pytest.raises(MethodError, match=message):
        find_grid(str(tmp_path / "bad.toml"))


@pytest.mark.parametrize("method", ['["deployed", 3]', "{ a = 1 }", '[["soda"]]'])
def test_the_command_refuses_a_method_that_is_not_a_name(tmp_path, capsys, method: str) -> None:
    (tmp_path / "mine.toml").write_text(f"[[cells]]\nmethod = {method}\nsettings = {{ q = 3 }}\n")
    assert main(["bench", "run", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out")]) == 2
    assert "must be a name" in capsys.readouterr().err


def test_cells_with_missing_images_are_reported_in_json_too(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("SODA_TTA_DATA", str(tmp_path / "nothing"))
    grid = tmp_path / "mine.toml"
    grid.write_text('[[cells]]\nmethod = "deployed"\ndata = "cifar100"\n')
    assert main(["bench", "run", str(grid), "--out", str(tmp_path / "out"), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["failed"]
