import json
from dataclasses import replace

import numpy as np
import pytest

from soda_tta.bench import GRIDS, SCALES, Cell, find_grid
from soda_tta.bench.experiments import OWN_PROTOCOL
from soda_tta.bench.measurement import chosen_images
from soda_tta.cli import main
from soda_tta.errors import MethodError
from soda_tta.methods import all_methods


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", GRIDS)
def test_every_cell_of_every_built_in_grid_can_be_run(name: str, scale: str) -> None:
    cells = find_grid(name, scale)
    assert cells
    assert len({cell.key for cell in cells}) == len(cells)
    for cell in cells:
        cell.check()


def test_the_main_table_holds_every_method_on_all_19_corruptions() -> None:
    cells = find_grid("cifar10", "paper")
    assert {cell.method for cell in cells} == set(all_methods()) - OWN_PROTOCOL
    assert len({cell.corruption for cell in cells}) == 19 and {cell.seed for cell in cells} == {
        0,
        1,
        2,
    }
    assert {cell.images for cell in cells} == {10_000}


def test_a_grid_from_toml_is_every_combination(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[cells]]\nmethod = ["soda", "deployed"]\ncorruption = ["fog", "clean"]\nseed = [0, 1]\nimages = 50\n'
        "settings = { epochs = 2, lr = 0.1 }\n"
    )
    cells = find_grid(str(path))
    assert len(cells) == 8 and {cell.images for cell in cells} == {50}
    assert {str(cell.settings) for cell in cells if cell.method == "soda"} == {
        "{'epochs': 2, 'lr': 0.1}"
    }
    assert not any(cell.settings for cell in cells if cell.method == "deployed")


def test_lists_inside_numbers_are_combined_too(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[cells]]\nmethod = ["soda", "deployed"]\nnumbers = { epochs = [2, 3], lr = [0.1, 0.2], q = 1 }\n'
        '[[cells]]\nmethod = "soda-o"\nnumbers = { queue = [0, 500] }\n'
    )
    cells = find_grid(str(path))
    assert [cell.method for cell in cells].count("deployed") == 1
    assert {(c.settings["epochs"], c.settings["lr"]) for c in cells if c.method == "soda"} == {
        (2, 0.1),
        (2, 0.2),
        (3, 0.1),
        (3, 0.2),
    }
    assert [c.settings for c in cells if c.method == "soda-o"] == [{"queue": 0}, {"queue": 500}]


def settings_in(path, table: str) -> dict[str, list[dict]]:
    path.write_text(f"[[cells]]\n{table}\n")
    found: dict[str, list[dict]] = {}
    for cell in find_grid(str(path)):
        cell.check()
        found.setdefault(cell.method, []).append(cell.settings)
    return found


def test_of_the_numbers_of_several_methods_each_that_learns_takes_those_it_has(
    tmp_path, recwarn
) -> None:
    path, learning = (
        tmp_path / "mine.toml",
        ["soda", "da-pgd", "da-zoo-input", "ma-so", "soda-o", "soda-office-home"],
    )
    yardsticks = ["deployed", "lame", "bn", "tent", "soda-e"]
    taken = settings_in(
        path, f"method = {learning + yardsticks}\nsettings = {{ epochs = 2, lr = 0.01 }}"
    )
    assert all(taken[method] == [{"epochs": 2, "lr": 0.01}] for method in learning)
    assert all(taken[method] == [{}] for method in yardsticks) and not recwarn.list


def test_a_number_that_a_method_has_not_is_told_and_runs_it_once(tmp_path) -> None:
    table = "method = ['soda', 'soda-fo', 'dine']\nnumbers = { epochs = 2, q = [2, 5] }"
    with pytest.warns(UserWarning) as told:
        taken = settings_in(tmp_path / "mine.toml", table)
    assert taken["soda"] == [{"epochs": 2, "q": 2}, {"epochs": 2, "q": 5}]
    assert taken["soda-fo"] == taken["dine"] == [{"epochs": 2}]
    assert sorted(str(each.message) for each in told) == [
        "dine has no number q and is run without it.",
        "soda-fo has no number q and is run without it.",
    ]


def test_a_part_put_in_place_of_another_brings_its_settings(tmp_path) -> None:
    table = "method = ['deployed', 'soda']\nnumbers = { search = 'evolution', population = 8, adaptor = 'bank' }"
    assert settings_in(tmp_path / "mine.toml", table)["soda"] == [
        {"search": "evolution", "population": 8, "adaptor": "bank"}
    ]


def test_evolution_of_too_many_parameters_is_refused_before_the_first_cell() -> None:
    cell = Cell(method="soda", settings={"search": "evolution"})
    with pytest.raises(MethodError, match=r"correlations of 3,523 parameters.*diagonal=true"):
        cell.check()
    replace(cell, settings={"search": "evolution", "diagonal": True}).check()
    replace(cell, settings={"search": "evolution", "adaptor": "bank"}).check()


def test_a_method_that_has_none_of_the_numbers_is_told_too(tmp_path) -> None:
    with pytest.warns(UserWarning, match="dine has no number q and is run without it"):
        assert settings_in(
            tmp_path / "mine.toml", "method = ['soda', 'dine']\nnumbers = { q = 2 }"
        )["dine"] == [{}]


@pytest.mark.parametrize(
    "table",
    [
        "method = { a = 1 }\nnumbers = { q = 2 }",
        "method = [['soda'], 'dine']\nnumbers = { q = 2 }",
        "method = [1, 2]\nnumbers = { q = 2 }",
        "method = ['soda', 'da-pl']\nnumbers = { search = [['evolution']] }",
        "method = ['soda', 'da-pgd']\nnumbers = { lr = 'auto' }",
    ],
)
def test_what_cannot_be_a_method_or_a_number_is_refused_in_words(tmp_path, table: str) -> None:
    with pytest.raises(MethodError, match=r"is a name|is unknown|is not a number"):
        settings_in(tmp_path / "mine.toml", table)


@pytest.mark.parametrize("method", ["'dine'", "['dine']", "['dine', 'dine']"])
def test_a_list_of_one_method_is_that_method(tmp_path, method: str) -> None:
    with pytest.raises(MethodError, match="dine has no number 'lr'"):
        settings_in(tmp_path / "mine.toml", f"method = {method}\nsettings = {{ lr = 0.1 }}")


def test_numbers_of_methods_of_ones_own_are_shared_out_too(tmp_path, monkeypatch) -> None:
    (tmp_path / "own_settings.py").write_text(
        "from dataclasses import dataclass\nfrom soda_tta.methods import Method\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Sharper(Method):\n    power: float = 2.0\n"
        "sharper = Sharper(name='sharper', summary='', needs='probabilities')\n"
        "from soda_tta.methods import all_methods\nquick = all_methods()['soda'].but(epochs=1).renamed('quick', '')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    table = "method = ['deployed', 'own_settings:sharper']\nnumbers = { power = [2, 3] }"
    taken = settings_in(tmp_path / "mine.toml", table)
    assert taken == {"deployed": [{}], "own_settings:sharper": [{"power": 2}, {"power": 3}]}
    both = settings_in(
        tmp_path / "mine.toml", "method = ['soda', 'own_settings:quick']\nnumbers = { epochs = 5 }"
    )
    assert both["own_settings:quick"] == [{"epochs": 5}]


def test_clean_images_have_no_severity_and_a_known_set_of_images_brings_its_model(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[cells]]\nmethod = "soda"\ncorruption = ["fog", "clean"]\nseverity = [3, 5]\ndata = "cifar100"\n'
        '[[cells]]\nmethod = "deployed"\ncorruption = "clean"\ndata = ["pacs/sketch", "CIFAR-10"]\n'
    )
    cells = find_grid(str(path))
    assert sorted((c.corruption, c.severity) for c in cells[:3]) == [
        ("clean", 5),
        ("fog", 3),
        ("fog", 5),
    ]
    models = ["cifar100_resnet20"] * 3 + ["pacs_photo_lite0", "cifar10_resnet20"]
    assert [cell.model for cell in cells] == models


# what the paper varies, and the grid that varies it: SPEC section 5
EXPERIMENTS = [
    ("queries", "soda", "q", {2, 5, 10, 20, 50}),
    ("blocks", "soda", "blocks", {0, 1, 2, 3}),
    ("blocks", "soda-r", "blocks", {0, 1, 2, 3}),
    ("online-epochs", "soda-o", "epochs", {5, 10, 30, 50, 100, 150}),
    ("online-batch", "soda-o", "arrival", {32, 64, 128, 256}),
    ("online-queue", "soda-o", "queue", {500, 1000, 2000, 3000}),
    ("optimisers", "soda-r", "step", {"sgd", "adam"}),
    ("dropout", "soda-r", "dropout", {0.0, 0.5}),
    ("released", "soda", "aligned", {True, False}),
    ("average", "soda", "average", {True, False}),
    ("convergence-300", "soda", "epochs", {300}),
    ("start", "soda-r", "start", {1.0, 0.0}),
]


@pytest.mark.parametrize(("name", "method", "number", "values"), EXPERIMENTS)
def test_a_grid_varies_what_the_paper_varies(
    name: str, method: str, number: str, values: set
) -> None:
    cells = [cell for cell in find_grid(name, "paper") if cell.method == method]
    assert {cell.settings[number] for cell in cells} == values
    if name != "average" and number != "epochs":
        assert {cell.data for cell in cells} == {"cifar10", "cifar100"} and len(
            {c.corruption for c in cells}
        ) == 19


def test_the_papers_grid_of_thresholds_and_numbers_of_points() -> None:
    cells = find_grid("selection", "paper")
    assert (
        len({(c.settings["tau"], c.settings["rho"], c.settings["alpha"]) for c in cells})
        == 9 * 5 * 3
    )
    assert {cell.images for cell in find_grid("points", "paper")} == {
        50,
        100,
        500,
        1000,
        5000,
        10_000,
    }
    (full,) = find_grid("full-scale")
    assert full.images == 10_000 and full.settings == {}  # soda's own 150 epochs and lr


def test_small_scales_keep_lr_times_steps_where_no_lr_can_be_chosen() -> None:
    desk = {cell.method: cell.settings for cell in find_grid("cifar10", "desk")}
    assert desk["soda"]["lr"] == desk["da-pl"]["lr"] == 0.03 and desk["soda-fo"]["lr"] == 0.003
    assert desk["soda-o"]["lr"] == 0.03
    assert desk["da-pgd"]["lr"] == 0.005 and desk["da-zoo-input"]["lr"] == 0.001
    assert SCALES["desk"].settings("da-zoo-input", "imagenet")["lr"] == 0.1
    other = SCALES["desk"].settings("soda-o", "imagenet")
    assert other["lr"] == 0.06  # 6 steps an epoch over the stream where the paper has 374
    assert all("lr" not in cell.settings for cell in find_grid("cifar10", "paper"))
    (lr,) = {cell.settings["lr"] for cell in find_grid("imagenet") if cell.method == "soda"}
    assert lr == "auto"  # the rate of CIFAR says nothing there
    assert {
        cell.settings["lr"] for cell in find_grid("cifar10", "tiny") if cell.method == "soda"
    } == {"auto"}


def test_a_peer_is_run_longer_and_on_more_images_in_proportion_to_the_scale() -> None:
    for scale in ("tiny", "desk"):
        size = SCALES[scale]
        cells = [cell for cell in find_grid("peers", scale) if cell.method == "dine"]
        epochs = sorted({cell.settings["epochs"] for cell in cells})
        assert len(epochs) == 2 and epochs[1] == 5 * epochs[0]
        assert {cell.images for cell in cells} == {size.images, 4 * size.images}


def test_a_cell_takes_an_own_onnx_file_but_not_for_a_white_box_method(tmp_path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    Cell(method="soda", model=str(tmp_path / "model.onnx")).check()
    with pytest.raises(MethodError, match="an ONNX file does not offer"):
        Cell(method="bn", model=str(tmp_path / "model.onnx")).check()
    with pytest.raises(MethodError, match="there is no model"):
        Cell(method="soda", model=str(tmp_path / "absent.onnx")).check()


def test_images_sorted_by_class_are_taken_from_everywhere() -> None:
    assert chosen_images(np.array([2, 0, 1, 0]), 2) == slice(0, 2)
    assert chosen_images(np.repeat([0, 1, 2], 10), 3).tolist() == [0, 14, 29]
    assert chosen_images(np.repeat([0, 1, 2], 10), 30) == slice(0, 30)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[[cells]]\nmethd = 'soda'\n", "method is missing"),
        ("cells = 3 =", "no grid"),
        ("[grid]\n", "no grid"),
        ("[[cells]]\nmethod = []\n", "names no cell"),
        (
            "[[cells]]\nmethod = 'soda'\ndata = 'my/images'\n",
            "choose one of cifar10, .* or the path",
        ),
        ("[[cells]]\nmethod = 'soda'\ndata = '/'\n", "name one"),
        (
            "[[cells]]\nmethod = ['soda', 'dine']\nnumbers = { topc = 0 }\n",
            "none of soda, dine takes a number 'topc'",
        ),
        (
            "[[cells]]\nmethod = ['bn', 'deployed']\nnumbers = { epochs = 2 }\n",
            "none of bn, deployed takes",
        ),
        ("[[cells]]\nmethod = 'soda'\ndata = 'office-home/Art'\n", "name one"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(tmp_path, content: str, says: str) -> None:
    (tmp_path / "bad.toml").write_text(content)
    with pytest.raises(MethodError, match=says):
        find_grid(str(tmp_path / "bad.toml"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (dict(method="sodda"), "choose one of"),
        (dict(method="soda", corruption="rain"), "gaussian_noise"),
        (dict(method="soda", severity=6), "severity"),
        (dict(method="soda", model="vgg"), "cifar10_resnet20"),
        (dict(method="soda", settings={"qq": 1}), "has no number"),
        (
            dict(method="soda-o", settings={"quue": 1}),
            "has no number 'quue'; it has arrival, queue, epochs",
        ),
        (dict(method="soda", model="cifar100_resnet20"), "does not know the classes of cifar10"),
        (
            dict(method="ma-so", budget=10),
            "ma-so on gaussian_noise 5 of cifar10, .*, budget 10, seed 0: .*raise the budget",
        ),
        (dict(method="soda", images="32"), "images is a whole number of 1 or more, not '32'"),
        (dict(method="soda", images=0), "images is a whole number of 1 or more, not 0"),
        (dict(method="soda", seed=-1), "seed is a whole number"),
        (dict(method="soda", curve=True), "curve is a whole number"),
        (dict(method="soda", severity="5"), "severity is a whole number"),
        (dict(method="soda", corruption=3), "corruption is a name"),
        (dict(method="soda", budget="10"), "budget is a number of queries an image"),
    ],
)
def test_an_impossible_cell_fails_before_the_first_query_and_lists_what_exists(
    wrong, says: str
) -> None:
    with pytest.raises(Exception, match=says):
        Cell(**wrong).check()


@pytest.mark.parametrize("method", ['["deployed", 3]', "{ a = 1 }", '[["soda"]]'])
def test_a_method_that_is_no_name_is_refused_by_the_command(tmp_path, capsys, method: str) -> None:
    (tmp_path / "mine.toml").write_text(f"[[cells]]\nmethod = {method}\nsettings = {{ q = 3 }}\n")
    assert main(["bench", "run", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out")]) == 2
    assert "is a name" in capsys.readouterr().err


def test_cells_whose_images_are_not_there_are_told_in_json_too(
    tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.setenv("SODA_TTA_DATA", str(tmp_path / "nothing"))
    (tmp_path / "mine.toml").write_text('[[cells]]\nmethod = "deployed"\ndata = "cifar100"\n')
    assert (
        main(
            ["bench", "run", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out"), "--json"]
        )
        == 2
    )
    assert json.loads(capsys.readouterr().out)["failed"]


def test_unknown_grids_and_scales_are_refused() -> None:
    with pytest.raises(MethodError, match="yardstick"):
        find_grid("cifar")
    with pytest.raises(MethodError, match="desk"):
        find_grid("cifar10", "huge")


def test_numbers_of_a_data_set_go_to_every_method_that_has_them() -> None:
    online = [cell for cell in find_grid("online-batch", "paper") if cell.data == "cifar100"]
    assert online and all(cell.settings["q"] == 10 for cell in online)
    known = {cell.method: cell.settings for cell in find_grid("cifar100")}
    assert known["soda"]["q"] == 10 and known["deployed"] == {} and "q" not in known["soda-r"]
    assert (
        known["soda"]["deviation"] == known["soda-r"]["deviation"] == 0.267
        and "deviation" not in known["ma-so"]
    )
    assert all(
        cell.settings["tau"] == 0.1
        for cell in find_grid("imagenet", "paper")
        if cell.method == "ma-so"
    )
    imagenet = {cell.method: cell.settings for cell in find_grid("imagenet")}
    assert imagenet["soda"]["deviation"] == imagenet["soda-r"]["deviation"] == 0.226
    assert imagenet["soda-r"]["beta"] == 0.0  # as in the released script; the paper names none


@pytest.mark.parametrize(("grid", "corruptions"), [("cifar10", 19), ("imagenet", 2)])
def test_a_main_table_has_soda_r_from_both_starts(grid: str, corruptions: int) -> None:
    starts = [cell.settings.get("start") for cell in find_grid(grid) if cell.method == "soda-r"]
    assert sorted(starts, key=str) == [0.0] * corruptions + [None] * corruptions


@pytest.mark.parametrize("scale", ["desk", "paper"])
def test_steps_splits_the_same_queries_in_different_ways(scale: str) -> None:
    cells = find_grid("steps", scale)
    assert (
        len({cell.plan().total / cell.images for cell in cells}) == 1
    )  # what soda asks with five directions
    assert {cell.settings["q"] for cell in cells} == {1, 2, 5, 8, 17}


def test_office_home_on_a_desk_keeps_lr_times_steps() -> None:
    for scale, want in (("desk", (15, 2, 0.02)), ("paper", (60, 10, 1e-3))):
        (cell, *_) = [
            cell for cell in find_grid("office-home", scale) if cell.method == "soda-office-home"
        ]
        settings = {**all_methods()[cell.method].settings, **cell.settings}
        assert tuple(settings[name] for name in ("epochs", "warmup", "lr")) == want


def test_both_stages_of_a_distillation_keep_the_papers_share() -> None:
    for scale, stages in (("paper", (120, 30)), ("desk", (24, 6))):
        (cell, *_) = [cell for cell in find_grid("cifar10", scale) if cell.method == "dine"]
        assert (cell.settings["epochs"], cell.settings["finetune_epochs"]) == stages


def test_in_the_papers_size_every_data_set_has_the_methods_the_paper_shows_there() -> None:
    everything = set(all_methods()) - OWN_PROTOCOL
    assert {cell.method for cell in find_grid("cifar100", "paper")} == everything
    assert {cell.method for cell in find_grid("imagenet", "paper")} == everything - {
        "dine",
        "beta",
        "soda-fo",
    }
