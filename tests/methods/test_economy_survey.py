"""Conditions that the same recipes help are one before anything is searched."""

from types import SimpleNamespace

import numpy as np
import pytest

from soda_tta import adapt, all_methods
from soda_tta.conditions import find_conditions
from soda_tta.data import open_images
from soda_tta.methods.economy_campaign import Campaign, Ground
from soda_tta.methods.economy_survey import KEPT, helpful, joined_by_gains, likeness

SODA_E = all_methods()["soda-e"]


def test_likeness_is_the_correlation_with_the_images_as_they_are_among_the_choices() -> None:
    one, other = np.array([1.0, 2.0, -1.0]), np.array([2.0, 4.0, -2.0])
    assert likeness(one, other) == pytest.approx(1)
    assert likeness(one, -other) == pytest.approx(-1)
    shifted = np.corrcoef([0.5, 1.5, -1.5, 0], [1.0, 2.0, -1.0, 0])[0, 1]
    assert likeness(one - 0.5, one) == pytest.approx(shifted)
    assert likeness(np.zeros(3), np.zeros(3)) == 1
    assert likeness(np.zeros(3), one) == 0


def test_recipes_that_gain_are_kept_the_best_first() -> None:
    assert helpful(np.array([0.1, -1.0, 0.4, 0.3, 0.2])) == (2, 3, 4)
    assert helpful(np.array([-0.1, 0.0, 0.4])) == (2,)
    assert helpful(np.full(4, -1.0)) == ()


def test_larger_conditions_have_a_larger_say_in_what_begins_the_search() -> None:
    gains = [np.array([1.0, 0.8, -2.0]), np.array([0.8, 1.0, -2.0])]
    (first,) = joined_by_gains(gains, sizes=[900, 100])
    assert first.members == (0, 1) and first.recipes == (0, 1)
    (first,) = joined_by_gains(gains, sizes=[100, 900])
    assert first.recipes == (1, 0)


def test_conditions_that_look_different_and_need_the_same_are_joined(mixed, monkeypatch) -> None:
    """A white corner on every second hazy image changes the picture and not what helps."""
    random = np.random.default_rng(0)
    hazy = np.concatenate([mixed.images[mixed.hazy]] * 4)
    images = (hazy + 0.01 * random.standard_normal(hazy.shape)).clip(0, 1).astype(np.float32)
    images[::2, :, :5, :5] = 1.0
    found = []
    survey = Campaign.survey

    def spied(campaign: Campaign) -> None:
        before = len(campaign.grounds)
        survey(campaign)
        found.append((before, len(campaign.grounds), len(campaign.grounds[0].starts)))

    monkeypatch.setattr(Campaign, "survey", spied)
    run = adapt(images, mixed.model, budget=60, groups="none")
    ((before, after, starts),) = found
    assert before > after == 1 and 0 < starts <= KEPT
    assert run.conditions is None and run.verdict.adopt
    assert run.ledger.total <= 60 * len(images)


def test_a_fixed_number_of_conditions_is_not_surveyed(mixed) -> None:
    found = find_conditions(mixed.images)
    for method, surveyed in ((SODA_E, True), (SODA_E.but(conditions=2), False)):
        work = SimpleNamespace(
            images=open_images(np.concatenate([mixed.images] * 20)),
            meter=SimpleNamespace(limit=None),
            seed=0,
        )
        campaign = Campaign(method, work, found)
        campaign.grounds = [Ground(0, np.arange(2000)), Ground(1, np.arange(2000, 4000))]
        assert (campaign.images_to_survey() > 0) == surveyed
