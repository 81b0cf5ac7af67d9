"""The conditions of a source: found, found again from more images, bounded."""

import numpy as np
import pytest
from tests.engine.live_traffic import Templates, scenes

from soda_tta.conditions.growing import Growth
from soda_tta.conditions.statistics import NAMES
from soda_tta.engine import live_source
from soda_tta.engine.live import LiveStream
from soda_tta.engine.live_buffer import Item
from soda_tta.engine.live_source import Source
from soda_tta.judging.gate import Watch
from soda_tta.types import Array

BLANK = np.zeros((3, 8, 8), np.uint8)


def statistics(count: int, seed: int, shift: float = 0.0) -> Array:
    rows = np.random.default_rng(seed).normal(size=(count, len(NAMES)))
    rows[:, :4] += shift
    return rows


def arrive(source: Source, rows: Array) -> list[int]:
    """Let images with these statistics arrive; return the new conditions."""
    found = []
    for row in rows:
        conditions, familiar = source.conditions_of(row[None])
        item = Item(source.arrived + 1, BLANK, np.ones(2), row, int(conditions[0]), 0, None)
        source.add(item, bool(familiar[0]))
        found += source.look_at_recent()
    return found


@pytest.fixture
def source(monkeypatch) -> Source:
    monkeypatch.setattr(live_source, "SECOND_ROUTER", 480)
    monkeypatch.setattr(live_source, "FIRST_ROUTER", 384)
    return Source(0, 400, 0)


def test_a_condition_that_was_two_is_split_and_both_parts_inherit_its_adaptor(
    source, monkeypatch
) -> None:
    mixed = np.concatenate([statistics(240, 0), statistics(240, 1, shift=12.0)])
    mixed = mixed[np.random.default_rng(2).permutation(480)]
    monkeypatch.setattr(live_source, "GROWTH_EVERY", 1000)
    fitted = live_source.fitted_router
    monkeypatch.setattr(live_source, "fitted_router", lambda rows, count, seed: fitted(rows, 1, 0))
    assert arrive(source, mixed[:400]) == [0]
    source.conditions[0].theta[3] = 0.5
    source.conditions[0].adaptor = 7
    source.renew_shelf()
    monkeypatch.setattr(live_source, "fitted_router", fitted)
    assert arrive(source, mixed[400:]) == [0, 1]
    for condition in source.conditions:
        assert condition.theta[3] == 0.5 and condition.adaptor == 7
        assert isinstance(condition.watch, Watch) and condition.search is None
    assert source.shelf is not None and len(source.shelf.adaptors) == 2
    assert {0, 1} <= {item.condition for item in source.buffer.items}
    assert not source.rows  # they are needed only once


def test_without_an_adaptor_there_is_nothing_to_split(source) -> None:
    arrive(source, statistics(480, 0))
    before = source.router
    assert source.shelf is None and arrive(source, statistics(1, 1)) == []
    assert source.router is before and not source.rows


def test_a_few_images_are_not_yet_taken_for_an_old_condition(source, monkeypatch) -> None:
    arrive(source, statistics(400, 0))
    before = source.router
    joined = Growth(before.joined(np.zeros(len(before), int)), 0)
    answers = iter([joined] * 3 + [None] + [joined] * live_source.DOUBTS)
    monkeypatch.setattr(live_source, "grown", lambda *rows: next(answers))
    arrive(source, statistics(32 * (3 + live_source.DOUBTS), 1))  # 3 looks, one apart, then ...
    assert source.router is before and source.doubts == live_source.DOUBTS - 1
    source.conditions[0].words = "hazy"
    assert arrive(source, statistics(32, 2)) == []
    assert source.router is joined.router and source.doubts == 0
    assert source.conditions[0].words == "hazy"  # the buffer has nothing to compare it with


def test_the_condition_that_was_not_seen_longest_makes_room(source, monkeypatch) -> None:
    monkeypatch.setattr(live_source, "MOST_CONDITIONS", 1)
    arrive(source, statistics(400, 0))
    assert source.drop_oldest() is None
    assert arrive(source, statistics(128, 1, shift=5.0)) == [1]
    old = source.conditions[0]
    assert source.drop_oldest() is old
    assert len(source.conditions) == len(source.router) == 1


def test_grey_images_make_conditions_with_words() -> None:
    """Their colours tell nothing apart, so that the router knows fewer numbers than have words."""
    images, _ = scenes(512, 1)
    grey = images.mean(axis=1, keepdims=True).repeat(3, axis=1)
    stream = LiveStream(Templates(), learn_budget=0)
    stream(grey)
    (source,) = stream.facts()["sources"]
    assert [each["words"] for each in source["conditions"]] == ["like the average"]


def test_images_that_were_sent_as_they_came_stay_so_after_a_promotion() -> None:
    model = Templates()
    stream = LiveStream(model, buffer=400, learn_budget=0)
    images = scenes(400, 1)[0]
    stream.arrived(images, model(images))
    while stream.learn():
        pass
    sent, routes = stream.adapted(images[:20])  # nothing is adapted yet, so there are no routes
    source = stream.learner.sources[None]
    for condition in source.conditions:
        condition.theta[:], condition.adaptor = 0.1, 1
    source.renew_shelf()
    stream.publish()
    stream.arrived(scenes(20, 2)[0], model(sent), routes=routes)
    stream.learn()
    assert {item.adaptor for item in source.buffer.items[-20:]} == {0}
