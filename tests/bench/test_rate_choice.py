"""What a schedule would take, from the losses of runs at every rate."""

import pytest

from soda_tta.bench import Cell, Store
from soda_tta.bench.scales import RATES
from soda_tta.engine.plan import plan_run
from soda_tta.methods import all_methods
from soda_tta.methods.loop_method import LEARNING_RATES


@pytest.fixture(scope="module")
def rate_choice(benchmark_script):
    return benchmark_script("rate_choice")


def falling(slope: float, floor: float) -> list[float]:
    return [max(floor, -slope * epoch) for epoch in range(1, 21)]


def test_a_late_choice_finds_what_overtakes(rate_choice) -> None:
    runs = {0.1: falling(0.3, -1.0), 0.03: falling(0.15, -2.0), 0.01: falling(0.05, -3.0)}
    assert rate_choice.taken(runs, ((0.05, 2), (0.2, 1))) == 0.1
    assert rate_choice.taken(runs, ((0.05, 3), (0.2, 2), (0.5, 1))) == 0.03
    assert rate_choice.final_loss(runs[0.03]) == -2.0


def test_a_schedule_costs_what_the_plan_says(rate_choice) -> None:
    schedule = rate_choice.RUNGS
    plan = plan_run(all_methods()["soda-auto"].but(epochs=100), 1000)
    once = plan_run(all_methods()["soda"].but(epochs=100), 1000).queries["probe"]
    paid = plan.queries["tune"] + plan.queries["probe"]
    assert rate_choice.cost(schedule, 5) == pytest.approx(paid / once) == pytest.approx(1.8)
    assert schedule in rate_choice.SCHEDULES.values()


def test_the_least_loss_is_taken_for_each_corruption_whatever_its_accuracy(rate_choice) -> None:
    def entry(lr: float, where: str, losses: list[float], **more):
        return Cell(method="soda", corruption=where, settings={"lr": lr}), {
            "losses": losses,
            "after": 1.0,
            "card": {},
            **more,
        }

    found = [
        entry(0.1, "fog", [-3.0] * 8 + [-1.0, -1.0], after=90.0),
        entry(0.01, "fog", [0.0] * 8 + [-1.0, -1.1]),
        entry(
            0.1, "snow", [], curve=[{"loss": -0.2}, {"loss": -0.5}]
        ),  # of before losses were kept
        entry(0.01, "snow", [], curve=[{"loss": -0.6}, {"loss": -0.4}]),
    ]
    assert [
        (cell.corruption, cell.settings["lr"]) for cell, _ in rate_choice.least_loss(found)
    ] == [
        ("fog", 0.01),
        ("snow", 0.1),
    ]


def test_the_rates_of_a_desk_are_those_that_end_with_the_least_loss(rate_choice) -> None:
    ends = rate_choice.ends(Store(rate_choice.STORE))
    assert set(ends) == set(RATES) - {"da-pl", "da-direct"}  # which share soda's
    for method in ends:
        assert set(ends[method]) == set(LEARNING_RATES)
        assert RATES[method] == min(ends[method], key=ends[method].get)
