"""Which learning rate a schedule chooses, from the losses of runs at every rate."""

import pytest

from soda_tta.bench import Cell, CellResult, Store
from soda_tta.bench.scales import RATES
from soda_tta.engine.plan import plan_run
from soda_tta.methods import all_methods
from soda_tta.methods.loop_method import LEARNING_RATES


@pytest.fixture(scope="module")
def rate_choice(benchmark_script):
    return benchmark_script("rate_choice")


def falling(slope: float, floor: float) -> list[float]:
    """Losses of 20 epochs that fall to a floor."""
    return [max(floor, -slope * epoch) for epoch in range(1, 21)]


def test_a_late_choice_finds_the_rate_that_overtakes(rate_choice) -> None:
    runs = {0.1: falling(0.3, -1.0), 0.03: falling(0.15, -2.0), 0.01: falling(0.05, -3.0)}
    assert rate_choice.chosen_rate(runs, ((0.05, 2), (0.2, 1))) == 0.1
    assert rate_choice.chosen_rate(runs, ((0.05, 3), (0.2, 2), (0.5, 1))) == 0.03
    assert rate_choice.final_loss(runs[0.03]) == -2.0


def test_a_schedule_costs_what_the_plan_says(rate_choice) -> None:
    schedule = rate_choice.RUNGS
    plan = plan_run(all_methods()["soda-auto"].but(epochs=100), 1000)
    one_run = plan_run(all_methods()["soda"].but(epochs=100), 1000).queries["probe"]
    planned = (plan.queries["tune"] + plan.queries["probe"]) / one_run
    assert rate_choice.schedule_cost(schedule, 5) == pytest.approx(planned) == pytest.approx(1.8)
    assert schedule in rate_choice.SCHEDULES.values()


def test_the_lowest_loss_is_chosen_per_corruption_whatever_the_accuracy(rate_choice) -> None:
    def entry(lr: float, corruption: str, losses: list[float], **more):
        cell = Cell(method="soda", corruption=corruption, settings={"lr": lr})
        facts = {"before": 0.0, "after": 1.0, "queries_per_image": 1.0, "losses": losses, **more}
        return cell, CellResult(**facts)

    entries = [
        entry(0.1, "fog", [-3.0] * 8 + [-1.0, -1.0], after=90.0),
        entry(0.01, "fog", [0.0] * 8 + [-1.0, -1.1]),
        # cells that are older than the stored losses
        entry(0.1, "snow", [], curve=[{"loss": -0.2}, {"loss": -0.5}]),
        entry(0.01, "snow", [], curve=[{"loss": -0.6}, {"loss": -0.4}]),
    ]
    chosen = rate_choice.lowest_loss(entries)
    assert [(cell.corruption, cell.settings["lr"]) for cell, _ in chosen] == [
        ("fog", 0.01),
        ("snow", 0.1),
    ]


def test_desk_scale_uses_the_rates_with_the_lowest_final_loss(rate_choice) -> None:
    losses = rate_choice.mean_final_losses(Store(rate_choice.STORE))
    assert set(losses) == set(RATES) - {"da-pl", "da-direct"}  # these two share soda's rate
    for method in losses:
        assert set(losses[method]) == set(LEARNING_RATES)
        assert RATES[method] == min(losses[method], key=losses[method].get)
