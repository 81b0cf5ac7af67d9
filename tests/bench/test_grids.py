"""The built-in grids: every cell can run, and they vary what the paper varies."""

import pytest

from soda_tta.bench import GRIDS, SCALES, find_grid
from soda_tta.bench.experiments import OWN_PROTOCOL
from soda_tta.errors import MethodError
from soda_tta.methods import all_methods


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", GRIDS)
def test_every_cell_of_every_built_in_grid_can_run(name: str, scale: str) -> None:
    cells = find_grid(name, scale)
    assert cells
    assert len({cell.key for cell in cells}) == len(cells)
    for cell in cells:
        cell.check()


def test_unknown_grids_and_scales_are_refused() -> None:
    with pytest.raises(MethodError, match="yardstick"):
        find_grid("cifar")
    with pytest.raises(MethodError, match="desk"):
        find_grid("cifar10", "huge")


def test_the_main_table_holds_every_method_on_all_19_corruptions() -> None:
    cells = find_grid("cifar10", "paper")
    assert {cell.method for cell in cells} == set(all_methods()) - OWN_PROTOCOL
    assert len({cell.corruption for cell in cells}) == 19
    assert {cell.seed for cell in cells} == {0, 1, 2}
    assert {cell.images for cell in cells} == {10_000}


# what the paper varies, and the grid that varies it: SPEC section 5
EXPERIMENTS = [
    ("queries", "soda", "directions", {2, 5, 10, 20, 50}),
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


@pytest.mark.parametrize(("name", "method", "setting", "values"), EXPERIMENTS)
def test_a_grid_varies_what_the_paper_varies(
    name: str, method: str, setting: str, values: set
) -> None:
    cells = [cell for cell in find_grid(name, "paper") if cell.method == method]
    assert {cell.settings[setting] for cell in cells} == values
    if name != "average" and setting != "epochs":
        assert {cell.data for cell in cells} == {"cifar10", "cifar100"}
        assert len({cell.corruption for cell in cells}) == 19


def test_thresholds_and_image_counts_are_the_papers() -> None:
    thresholds = {
        tuple(cell.settings[name] for name in ("tau", "rho", "alpha"))
        for cell in find_grid("selection", "paper")
    }
    assert len(thresholds) == 9 * 5 * 3
    counts = {cell.images for cell in find_grid("points", "paper")}
    assert counts == {50, 100, 500, 1000, 5000, 10_000}


def test_the_full_scale_run_has_the_papers_settings() -> None:
    (cell,) = find_grid("full-scale")
    assert cell.images == 10_000
    assert cell.settings == {}  # soda's own 150 epochs and lr


def test_small_scales_keep_lr_times_steps_if_no_lr_can_be_chosen() -> None:
    desk = {cell.method: cell.settings for cell in find_grid("cifar10", "desk")}
    assert desk["soda"]["lr"] == 0.03
    assert desk["da-pl"]["lr"] == 0.03
    assert desk["soda-fo"]["lr"] == 0.003
    assert desk["soda-o"]["lr"] == 0.03
    assert desk["da-pgd"]["lr"] == 0.005
    assert desk["da-zoo-input"]["lr"] == 0.001
    assert SCALES["desk"].settings("da-zoo-input", "imagenet")["lr"] == 0.1
    # 6 steps per epoch over the stream instead of the paper's 374
    assert SCALES["desk"].settings("soda-o", "imagenet")["lr"] == 0.06
    assert all("lr" not in cell.settings for cell in find_grid("cifar10", "paper"))


@pytest.mark.parametrize(("grid", "scale"), [("imagenet", "desk"), ("cifar10", "tiny")])
def test_other_small_scales_choose_the_lr_in_the_run(grid: str, scale: str) -> None:
    rates = {cell.settings["lr"] for cell in find_grid(grid, scale) if cell.method == "soda"}
    assert rates == {"auto"}


def test_a_peer_runs_longer_and_on_more_images_in_proportion_to_the_scale() -> None:
    for scale in ("tiny", "desk"):
        images = SCALES[scale].images
        cells = [cell for cell in find_grid("peers", scale) if cell.method == "dine"]
        shorter, longer = sorted({cell.settings["epochs"] for cell in cells})
        assert longer == 5 * shorter
        assert {cell.images for cell in cells} == {images, 4 * images}


def test_settings_of_a_data_set_apply_to_every_method_that_has_them() -> None:
    online = [cell for cell in find_grid("online-batch", "paper") if cell.data == "cifar100"]
    assert online
    assert all(cell.settings["directions"] == 10 for cell in online)
    cifar100 = {cell.method: cell.settings for cell in find_grid("cifar100")}
    assert cifar100["soda"]["directions"] == 10
    assert cifar100["deployed"] == {}
    assert "directions" not in cifar100["soda-r"]
    assert cifar100["soda"]["deviation"] == cifar100["soda-r"]["deviation"] == 0.267
    assert "deviation" not in cifar100["ma-so"]
    model_adaptation = [cell for cell in find_grid("imagenet", "paper") if cell.method == "ma-so"]
    assert all(cell.settings["tau"] == 0.1 for cell in model_adaptation)
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
    # as many queries as soda with five directions
    assert len({cell.plan().total / cell.images for cell in cells}) == 1
    assert {cell.settings["directions"] for cell in cells} == {1, 2, 5, 8, 17}


@pytest.mark.parametrize(("scale", "values"), [("desk", (15, 2, 0.02)), ("paper", (60, 10, 1e-3))])
def test_office_home_at_the_desk_scale_keeps_lr_times_steps(scale: str, values: tuple) -> None:
    (cell, *_) = [
        cell for cell in find_grid("office-home", scale) if cell.method == "soda-office-home"
    ]
    settings = {**all_methods()[cell.method].settings, **cell.settings}
    assert tuple(settings[name] for name in ("epochs", "warmup", "lr")) == values


@pytest.mark.parametrize(("scale", "stages"), [("paper", (120, 30)), ("desk", (24, 6))])
def test_both_stages_of_a_distillation_keep_the_papers_share(scale: str, stages: tuple) -> None:
    (cell, *_) = [cell for cell in find_grid("cifar10", scale) if cell.method == "dine"]
    assert (cell.settings["epochs"], cell.settings["finetune_epochs"]) == stages


def test_paper_scale_has_the_papers_methods_on_every_data_set() -> None:
    methods = set(all_methods()) - OWN_PROTOCOL
    assert {cell.method for cell in find_grid("cifar100", "paper")} == methods
    not_on_imagenet = {"dine", "beta", "soda-fo"}
    assert {cell.method for cell in find_grid("imagenet", "paper")} == methods - not_on_imagenet
