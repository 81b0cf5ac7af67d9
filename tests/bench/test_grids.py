import pytest

from soda_tta.bench import GRIDS, SCALES, Cell, find_grid
from soda_tta.errors import RecipeError
from soda_tta.recipes import methods


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
    assert {cell.method for cell in cells} == set(methods()) - {"soda-auto"}
    assert len({cell.corruption for cell in cells}) == 19 and {cell.seed for cell in cells} == {0, 1, 2}
    assert {cell.images for cell in cells} == {10_000}


def test_a_grid_from_toml_is_every_combination(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[cells]]\nmethod = ["soda", "deployed"]\ncorruption = ["fog", "clean"]\nseed = [0, 1]\nimages = 50\n'
        "numbers = { epochs = 2, lr = 0.1 }\n"
    )
    cells = find_grid(str(path))
    assert len(cells) == 8 and {cell.images for cell in cells} == {50}
    assert {str(cell.numbers) for cell in cells if cell.method == "soda"} == {"{'epochs': 2, 'lr': 0.1}"}
    assert not any(cell.numbers for cell in cells if cell.method == "deployed")


@pytest.mark.parametrize(
    ("content", "says"),
    [("[[cells]]\nmethd = 'soda'\n", "method is missing"), ("cells = 3 =", "no grid"), ("[grid]\n", "no grid")],
)
def test_a_grid_that_makes_no_sense_is_refused(tmp_path, content: str, says: str) -> None:
    (tmp_path / "bad.toml").write_text(content)
    with pytest.raises(RecipeError, match=says):
        find_grid(str(tmp_path / "bad.toml"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (dict(method="sodda"), "choose one of"),
        (dict(method="soda", corruption="rain"), "gaussian_noise"),
        (dict(method="soda", severity=6), "severity"),
        (dict(method="soda", model="vgg"), "cifar10_resnet20"),
        (dict(method="soda", numbers={"qq": 1}), "has no number"),
        (dict(method="ma-so", budget=10), "raise the budget"),
    ],
)
def test_an_impossible_cell_fails_before_the_first_query_and_lists_what_exists(wrong, says: str) -> None:
    with pytest.raises(Exception, match=says):
        Cell(**wrong).check()


def test_unknown_grids_and_scales_are_refused() -> None:
    with pytest.raises(RecipeError, match="yardstick"):
        find_grid("cifar")
    with pytest.raises(RecipeError, match="desk"):
        find_grid("cifar10", "huge")
