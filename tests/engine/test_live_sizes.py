"""Large images: fewer of them are kept. A live stream learns from those or says that it cannot."""

import numpy as np
import pytest
from tests.engine.live_traffic import Templates, scenes

from soda_tta.conditions.statistics import NAMES
from soda_tta.engine import live_source
from soda_tta.engine.live import LiveStream
from soda_tta.engine.live_buffer import Buffer, Item
from soda_tta.engine.live_pixels import as_bytes
from soda_tta.engine.live_source import Source
from soda_tta.types import Array

ASKED = 32  # images per request


def enlarged(images: Array, factor: int) -> Array:
    return images.repeat(factor, axis=2).repeat(factor, axis=3)


def guessing(images: Array) -> Array:
    """A model that costs nothing: it compares the brightness of the colours."""
    powers = np.exp(images.mean(axis=(2, 3)))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def small_buffers(monkeypatch, images: int, side: int) -> None:
    """Let buffers hold so many images with this side, as they hold larger ones otherwise."""
    room = images * 3 * side**2
    monkeypatch.setattr(live_source, "Buffer", lambda most: Buffer(most, room))


def names_of(events) -> list[str]:
    return [event.facts()["event"] for event in events]


def test_a_search_begins_at_224_pixels() -> None:
    events = []
    stream = LiveStream(guessing, listener=events.append)
    small, _ = scenes(640, 1)
    for start in range(0, len(small), ASKED):
        images = enlarged(small[start : start + ASKED], 14)
        assert images.shape[2:] == (224, 224)
        stream.arrived(images, guessing(images))
        while "probe" not in stream.ledger.queries and stream.learn():
            pass
    assert names_of(events)[:2] == ["condition found", "search started"]
    assert stream.ledger.queries["probe"] > 0


@pytest.mark.parametrize("room", [150, 256])
def test_with_little_room_there_are_conditions_searches_and_growth(monkeypatch, room: int) -> None:
    small_buffers(monkeypatch, room, side=16)
    events = []
    stream = LiveStream(Templates(), learn_budget=6, listener=events.append)
    for name in (False, True):
        images, _ = scenes(400, 1 + name, faded=name)
        for start in range(0, len(images), 20):
            stream(images[start : start + 20])
    assert names_of(events)[:2] == ["condition found", "search started"]
    found = [each for each in events if each.facts()["event"] == "condition found"]
    assert [each.condition for each in found] == [0, 1]
    searched = [each for each in events if each.facts()["event"] == "search started"]
    assert {each.condition for each in searched} == {0, 1}


def test_images_too_large_to_learn_from_are_reported_once(monkeypatch) -> None:
    small_buffers(monkeypatch, 100, side=16)
    events = []
    stream = LiveStream(Templates(), listener=events.append)
    images, _ = scenes(300, 1)
    for start in range(0, len(images), 20):
        stream(images[start : start + 20])
    (event,) = events
    assert event.facts()["event"] == "too large"
    assert "holds 100 of 16x16" in event.reason and "a search needs 128" in event.reason
    assert stream.ledger.total == 300  # the answers alone


def test_images_of_8_bits_lose_nothing_in_the_buffer(tmp_path) -> None:
    levels = np.random.default_rng(0).integers(256, size=(20, 3, 16, 16), dtype=np.uint8)
    stream = LiveStream(Templates())
    stream(levels)
    path = tmp_path / "stream.safetensors"
    stream.save(path)
    for each in (stream, LiveStream.load(path, stream.meter.box)):
        items = each.learner.sources[None].buffer.items
        pixels = np.array([item.pixels for item in items])
        assert pixels.dtype == np.float32
        assert np.array_equal(pixels, levels.astype(np.float32) / np.float32(255))
        assert {item.image.dtype for item in items} == {np.dtype(np.uint8)}


def test_floats_are_rounded_when_they_enter_the_buffer() -> None:
    images = np.random.default_rng(0).random((4, 3, 8, 8)).astype(np.float32)
    item = Item(0, as_bytes(images[0]), np.ones(2), np.zeros(len(NAMES)), 0, 0, None)
    assert np.abs(item.pixels - images[0]).max() <= 0.5 / 255 + 1e-6
    assert as_bytes(np.array([-0.5, 1.5], np.float32)).tolist() == [0, 255]


def test_the_first_router_waits_for_what_the_buffer_can_hold(monkeypatch) -> None:
    small_buffers(monkeypatch, 200, side=8)
    source = Source(0, 1000, 0)
    rows = np.random.default_rng(0).normal(size=(200, len(NAMES)))
    blank = np.zeros((3, 8, 8), np.uint8)
    for number, row in enumerate(rows):
        assert source.look_at_recent() == []
        source.add(Item(number + 1, blank, np.ones(2), row, -1, 0, None), familiar=False)
    assert source.look_at_recent() == [0]
