"""A stream: the queue by hand and by property, answers in order, every query counted, resumed bit for bit."""

import itertools
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from soda_tta import adapt
from soda_tta.box import CallableBox, Ledger, Quantised, load_box
from soda_tta.data import open_images
from soda_tta.engine.events import Step
from soda_tta.engine.stream import KEY, Stream
from soda_tta.errors import BoxError, BudgetError, ImageError, MethodError, RunError
from soda_tta.methods.method import Work
from soda_tta.methods.online import soda_o

SMALL = dict(epochs=2, q=2, width=2, batch=16, queue=12, tau=0.6, lr=0.1)


# The stream


def run(stream: Stream, images: np.ndarray, *sizes: int) -> list[np.ndarray]:
    places = np.cumsum([0, *sizes])
    return [stream(images[start:stop]) for start, stop in itertools.pairwise(places)]


def test_a_stream_counts_exactly_what_the_model_was_asked(box, model, images) -> None:
    steps: list[Step] = []
    stream = Stream(box, listener=steps.append, **SMALL)
    answers = run(stream, images, 20, 1, 17, 12)
    assert [len(rows) for rows in answers] == [20, 1, 17, 12]
    assert stream.ledger.total == model.asked
    assert stream.ledger.queries["select"] == stream.ledger.queries["evaluate"] == 50
    assert stream.ledger.queries["probe"] == sum(step.queries for step in steps)
    assert [step.epoch for step in steps] == sorted(step.epoch for step in steps)
    assert steps[-1].epoch == 4 * 2


def test_the_train_set_is_the_whole_queue_and_what_of_the_batch_is_not_in_it(box, images) -> None:
    stream = Stream(box, **{**SMALL, "epochs": 1, "batch": 1000})
    spent = 0
    for start in range(0, 50, 10):
        stream(images[start : start + 10])
        trained = stream.ledger.queries["probe"] - spent
        in_the_queue = [
            any(np.array_equal(image, each) for each in stream.queue.images)
            for image in images[start:][:10]
        ]
        assert trained == 3 * (10 - sum(in_the_queue) + len(stream.queue))
        spent += trained
    assert 0 < len(stream.queue) <= 12


def test_answers_are_those_of_the_current_adaptor_in_order(box, images) -> None:
    stream = Stream(box, **SMALL)
    answers = stream(images[:20])
    np.testing.assert_array_equal(answers, box(stream.adaptor(images[:20])))
    np.testing.assert_array_equal(stream.adaptor.parameters, stream.search.theta.astype(np.float32))


def test_a_stream_follows_its_seed(box, images) -> None:
    first, again, other = (
        run(Stream(box, seed=seed, **SMALL), images, 20, 20, 10) for seed in (3, 3, 4)
    )
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(first[-1], other[-1])


def test_batches_of_one_image(box, model, images) -> None:
    stream = Stream(box, **SMALL)
    answers = run(stream, images, *[1] * 15)
    assert all(rows.shape == (1, 4) and np.isfinite(rows).all() for rows in answers)
    assert stream.ledger.total == model.asked


def test_whatever_adapt_takes_is_a_batch(box, images) -> None:
    pixels = (images[:6] * 255).round().astype(np.uint8)
    by_bytes, by_floats = Stream(box, **SMALL), Stream(box, **SMALL)
    last = by_bytes(pixels.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(last, by_floats(pixels.astype(np.float32) / np.float32(255)))


@pytest.mark.parametrize("step", ["sgd", "adam"])
@pytest.mark.parametrize("budget", [None, 7.5])
def test_a_stream_saved_in_the_middle_continues_bit_for_bit(
    box, images, tmp_path, step: str, budget
) -> None:
    whole, broken = (Stream(box, seed=2, budget=budget, step=step, **SMALL) for _ in range(2))
    expected = run(whole, images, 20, 5, 15, 10)
    run(broken, images, 20, 5)
    broken.save(tmp_path / "stream.safetensors")
    resumed = Stream.load(tmp_path / "stream.safetensors", box)
    for one, two in zip(expected[2:], run(resumed, images[25:], 15, 10), strict=True):
        np.testing.assert_array_equal(one, two)
    for name, array in whole.search.state().items():
        np.testing.assert_array_equal(array, resumed.search.state()[name])
    np.testing.assert_array_equal(whole.queue.images, resumed.queue.images)
    np.testing.assert_array_equal(whole.queue.confidences, resumed.queue.confidences)
    assert resumed.ledger.queries == whole.ledger.queries
    assert resumed.recipe.settings == whole.recipe.settings
    resumed.save(tmp_path / "resumed.safetensors")
    whole.save(tmp_path / "whole.safetensors")
    for name, array in load_file(tmp_path / "whole.safetensors").items():
        np.testing.assert_array_equal(array, load_file(tmp_path / "resumed.safetensors")[name])


def test_a_stream_that_has_seen_nothing_can_be_saved(box, images, tmp_path) -> None:
    Stream(box, **SMALL).save(tmp_path / "new.safetensors")
    resumed = Stream.load(tmp_path / "new.safetensors", box)
    np.testing.assert_array_equal(resumed(images[:9]), Stream(box, **SMALL)(images[:9]))


def test_files_that_are_not_this_stream_are_refused(box, images, tmp_path) -> None:
    path = tmp_path / "stream.safetensors"
    stream = Stream(box, **SMALL)
    stream(images[:10])
    stream.save(path)
    with pytest.raises(RunError, match="another model"):
        Stream.load(path, lambda batch: np.full((len(batch), 4), 0.25))
    box.input, told = replace(box.input, mean=(0.5, 0.5, 0.5)), box.input
    with pytest.raises(RunError, match="tell the model the same"):
        Stream.load(path, box)
    box.input = told
    with pytest.raises(RunError, match="does not exist"):
        Stream.load(tmp_path / "none.safetensors", box)
    with safe_open(path, framework="numpy") as file:
        arrays, facts = load_file(path), json.loads(file.metadata()[KEY])
    damaged = {
        "stream of 'tent'": (arrays, {**facts, "method": "tent"}),
        "another version": (arrays, {**facts, "format": 99}),
        "do not fit": ({**arrays, "search.theta": np.zeros(3)}, facts),
        "not whole": ({**arrays, "queue.labels": np.zeros(1, np.int64)}, facts),
        "cannot be continued": (
            arrays,
            {name: fact for name, fact in facts.items() if name != "seed"},
        ),
    }
    for message, (some_arrays, some_facts) in damaged.items():
        save_file(some_arrays, path, {KEY: json.dumps(some_facts)})
        with pytest.raises(RunError, match=message):
            Stream.load(path, box)
    save_file(arrays, path)
    with pytest.raises(RunError, match="not a stream"):
        Stream.load(path, box)
    path.write_bytes(b"\x80\x04pickle")
    with pytest.raises(RunError, match="not a stream"):
        Stream.load(path, box)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=7),
    st.sampled_from([1, 1.3, 2, 2.5, 6, 20]),
    st.booleans(),
)
def test_a_budget_is_kept_after_every_batch_and_every_image_is_answered(
    sizes, budget, confident
) -> None:
    asked = 0

    def function(batch):
        nonlocal asked
        asked += len(batch)
        logits = (9.0 if confident else 2.0) * (batch.mean(axis=(2, 3)) - 0.5)
        return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)

    images = np.random.default_rng(0).random((sum(sizes), 3, 4, 4)).astype(np.float32)
    stream, arrived = Stream(function, budget=budget, **SMALL), 0
    for count in sizes:
        assert stream(images[arrived : arrived + count]).shape == (count, 3)
        arrived += count
        assert asked == stream.ledger.total <= budget * arrived + 1e-9


def test_what_one_batch_leaves_over_the_next_may_use(box, images) -> None:
    stream = Stream(
        box, budget=4, **{**SMALL, "batch": 256, "queue": 0, "tau": 1.0}
    )  # a step: 3 queries an image
    stream(images[:10])
    assert "probe" not in stream.ledger.queries  # 40 - 2 * 10 is too little for 30
    stream(images[10:20])
    assert stream.ledger.queries["probe"] == 30  # 80 - 10 - 20 is enough for one step


def test_with_one_query_an_image_a_stream_is_the_model_itself(box, images) -> None:
    stream = Stream(box, budget=1, **SMALL)
    np.testing.assert_array_equal(np.concatenate(run(stream, images, 25, 25)), box(images))
    assert stream.ledger.queries == {"select": 50}
    for budget in (0.5, float("inf"), float("nan")):
        with pytest.raises(BudgetError, match="at least 1"):
            Stream(box, budget=budget)
    with pytest.raises(MethodError, match="negative"):
        Stream(box, seed=-1)


@pytest.mark.parametrize("budget", [None, 12])
def test_a_batch_the_model_fails_on_can_be_sent_again(model, images, budget) -> None:
    fails = False

    def moody(batch):
        if fails and len(batch) > 20:
            raise OSError("gone")
        return model(batch)

    stream = Stream(CallableBox(moody), budget=budget, **SMALL)
    stream(images[:15])
    theta, queue = stream.search.theta, stream.queue
    fails = True
    with pytest.raises(BoxError, match="gone"):
        stream(images[15:30])
    assert stream.search.theta is theta
    assert stream.queue is queue
    fails = False
    assert len(stream(images[15:30])) == 15


def test_a_batch_that_cannot_be_used_costs_nothing(box, model, images) -> None:
    stream = Stream(box, **SMALL)
    stream(images[:20])
    asked = model.asked
    with pytest.raises(ImageError, match="8x8"):
        stream(images[20:30, :, :6])
    with pytest.raises(ImageError):
        stream(images[:0])
    with pytest.raises(ImageError):
        stream(images[:5] * 300)
    assert model.asked == asked == stream.ledger.total


def test_sure_images_without_a_place_in_the_queue_are_learnt_from_like_the_others(
    box, images
) -> None:
    stream = Stream(box, **{**SMALL, "epochs": 1, "queue": 0, "tau": 0.0})
    stream(images)
    assert stream.ledger.queries == {"select": 50, "probe": 150, "evaluate": 50}


def test_numbers_a_stream_does_not_know() -> None:
    for settings in (
        {"rho": 0.5},
        {"lr": "auto"},
        {"epochs": 0},
        {"arrival": 0},
        {"queue": -1},
        {"speed": 3},
    ):
        with pytest.raises(MethodError):
            soda_o.but(**settings)
    with pytest.raises(MethodError, match="no method for a stream"):
        Stream(lambda batch: batch, method="tent")
    assert soda_o.but(q=7, queue="500", alpha=0.1).settings["directions"] == 7
    assert soda_o.settings["epochs"] == 10
    assert "rho" not in soda_o.settings


# The same through `adapt`


def test_adapt_streams_the_images_in_order_and_pays_the_first_look_once(box, model, images) -> None:
    result = adapt(images, box, method=soda_o.but(arrival=20, **SMALL), seed=4)
    assert model.asked == result.ledger.total
    planned = result.card["plan"]["queries"]
    assert all(result.ledger.queries[purpose] <= planned[purpose] for purpose in planned)
    stream = Stream(box, seed=4, **SMALL)
    np.testing.assert_array_equal(
        result.probabilities, np.concatenate(run(stream, images, 20, 20, 10))
    )
    assert stream.ledger.queries == result.ledger.queries


def test_one_arrival_of_everything_with_nothing_sure_is_soda_itself(box, images) -> None:
    settings = dict(epochs=4, width=4, lr=0.3, mu=0.1, tau=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few steps
        offline = adapt(images, box, method="soda", seed=3, **settings)
    online = adapt(images, box, method=soda_o.but(arrival=50, **settings), seed=3)
    np.testing.assert_allclose(online.probabilities, offline.probabilities, atol=1e-4)
    assert np.abs(online.probabilities - online.before).max() > 0.01
    assert online.ledger.queries == offline.ledger.queries


def test_the_planned_cost_is_reached_when_the_model_is_always_sure(images) -> None:
    def sure(batch):
        chosen = (batch.mean(axis=(1, 2, 3)) * 1e6).astype(int) % 2
        return np.eye(2)[chosen] * 0.98 + 0.01

    method = soda_o.but(**{**SMALL, "arrival": 20, "queue": 1000})
    result = adapt(images, load_box(sure), method=method)
    assert result.ledger.queries == result.card["plan"]["queries"]


def test_the_papers_cost_with_a_full_queue() -> None:
    last = soda_o.queries(12_800)["probe"] - soda_o.queries(12_672)["probe"]
    assert last / 128 + 2 == pytest.approx(530, abs=2)


@pytest.mark.parametrize("budget", [1, 2, 3.3, 9])
def test_streaming_under_a_limit_stays_below_it_all_along(box, model, images, budget) -> None:
    before = box(images)
    ledger = Ledger(int(budget * 50))
    ledger.spend(50, "select")
    spent = [50]
    watch = Work(
        open_images(images), box, before, ledger, 0, lambda step: spent.append(ledger.total)
    )
    answers = soda_o.but(arrival=10, **SMALL).answer(watch)
    assert answers.shape == before.shape
    assert model.asked == ledger.total <= ledger.limit == int(budget * 50)
    if budget == 9:
        assert ledger.queries["probe"] > 0


def test_a_stream_before_a_model_that_rounds_says_what_drowns(box, images) -> None:
    with pytest.warns(UserWarning, match="rounding noise; raise mu"):
        Stream(Quantised(box), **SMALL)(images[:10])
    with pytest.warns(UserWarning, match="rounding noise; raise mu"):
        run = adapt(images, Quantised(box), method="soda-o", **SMALL)
    assert len([text for text in run.notices if "rounding noise" in text]) == 1
