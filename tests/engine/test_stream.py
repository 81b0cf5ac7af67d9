"""Streams: answers in order, every query counted, the budget kept, saved and continued exactly."""

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
from soda_tta.box import CallableBox, Ledger, Meter, Quantised, load_box
from soda_tta.data import open_images
from soda_tta.engine.events import Step
from soda_tta.engine.plan import plan_run
from soda_tta.engine.stream import Stream
from soda_tta.engine.work import Work
from soda_tta.errors import BoxError, BudgetError, ImageError, MethodError, RunError
from soda_tta.methods.online import soda_o
from soda_tta.storage.stream_file import KEY

SMALL = dict(epochs=2, q=2, width=2, batch=16, queue=12, tau=0.6, lr=0.1)


def run(stream: Stream, images: np.ndarray, *sizes: int) -> list[np.ndarray]:
    """The answers to the images in batches of these sizes."""
    places = np.cumsum([0, *sizes])
    return [stream(images[start:stop]) for start, stop in itertools.pairwise(places)]


def test_a_stream_counts_exactly_the_queries_that_the_model_receives(box, model, images) -> None:
    steps: list[Step] = []
    stream = Stream(box, listener=steps.append, **SMALL)
    answers = run(stream, images, 20, 1, 17, 12)
    assert [len(rows) for rows in answers] == [20, 1, 17, 12]
    assert stream.ledger.total == model.asked
    assert stream.ledger.queries["select"] == stream.ledger.queries["evaluate"] == 50
    assert stream.ledger.queries["probe"] == sum(step.queries for step in steps)
    assert [step.epoch for step in steps] == sorted(step.epoch for step in steps)
    assert steps[-1].epoch == 4 * 2


def test_a_stream_learns_from_its_queue_and_the_rest_of_the_batch(box, images) -> None:
    stream = Stream(box, **{**SMALL, "epochs": 1, "batch": 1000})
    spent = 0
    for start in range(0, 50, 10):
        stream(images[start : start + 10])
        trained = stream.ledger.queries["probe"] - spent
        queued = [
            any(np.array_equal(image, each) for each in stream.queue.images)
            for image in images[start:][:10]
        ]
        assert trained == 3 * (10 - sum(queued) + len(stream.queue))
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


def test_batches_may_be_single_images(box, model, images) -> None:
    stream = Stream(box, **SMALL)
    answers = run(stream, images, *[1] * 15)
    assert all(rows.shape == (1, 4) and np.isfinite(rows).all() for rows in answers)
    assert stream.ledger.total == model.asked


def test_a_batch_may_be_anything_that_adapt_takes(box, images) -> None:
    pixels = (images[:6] * 255).round().astype(np.uint8)
    from_bytes = Stream(box, **SMALL)(pixels.transpose(0, 2, 3, 1))
    from_floats = Stream(box, **SMALL)(pixels.astype(np.float32) / np.float32(255))
    np.testing.assert_array_equal(from_bytes, from_floats)


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
    assert resumed.method.settings == whole.method.settings
    resumed.save(tmp_path / "resumed.safetensors")
    whole.save(tmp_path / "whole.safetensors")
    for name, array in load_file(tmp_path / "whole.safetensors").items():
        np.testing.assert_array_equal(array, load_file(tmp_path / "resumed.safetensors")[name])


def test_a_stream_without_images_can_be_saved(box, images, tmp_path) -> None:
    Stream(box, **SMALL).save(tmp_path / "new.safetensors")
    resumed = Stream.load(tmp_path / "new.safetensors", box)
    np.testing.assert_array_equal(resumed(images[:9]), Stream(box, **SMALL)(images[:9]))


def test_files_of_other_streams_and_damaged_files_are_refused(box, images, tmp_path) -> None:
    path = tmp_path / "stream.safetensors"
    stream = Stream(box, **SMALL)
    stream(images[:10])
    stream.save(path)
    with pytest.raises(RunError, match="another model"):
        Stream.load(path, lambda batch: np.full((len(batch), 4), 0.25))
    original = box.input
    box.input = replace(original, mean=(0.5, 0.5, 0.5))
    with pytest.raises(RunError, match="specify the same facts about the model"):
        Stream.load(path, box)
    box.input = original
    with pytest.raises(RunError, match="does not exist"):
        Stream.load(tmp_path / "none.safetensors", box)
    with safe_open(path, framework="numpy") as file:
        facts = json.loads(file.metadata()[KEY])
    arrays = load_file(path)
    damaged = {
        "stream of 'tent'": (arrays, {**facts, "method": "tent"}),
        "another version": (arrays, {**facts, "format": 99}),
        "do not fit": ({**arrays, "search.theta": np.zeros(3)}, facts),
        "queue is incomplete": ({**arrays, "queue.labels": np.zeros(1, np.int64)}, facts),
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
    with pytest.raises(RunError, match="not a saved stream"):
        Stream.load(path, box)
    path.write_bytes(b"\x80\x04pickle")
    with pytest.raises(RunError, match="not a saved stream"):
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

    def model(batch):
        nonlocal asked
        asked += len(batch)
        logits = (9.0 if confident else 2.0) * (batch.mean(axis=(2, 3)) - 0.5)
        return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)

    images = np.random.default_rng(0).random((sum(sizes), 3, 4, 4)).astype(np.float32)
    stream = Stream(model, budget=budget, **SMALL)
    arrived = 0
    for count in sizes:
        assert stream(images[arrived : arrived + count]).shape == (count, 3)
        arrived += count
        assert asked == stream.ledger.total <= budget * arrived + 1e-9


def test_a_batch_may_use_what_the_one_before_left_of_the_budget(box, images) -> None:
    # a step costs 3 queries per image
    stream = Stream(box, budget=4, **{**SMALL, "batch": 256, "queue": 0, "tau": 1.0})
    stream(images[:10])
    assert "probe" not in stream.ledger.queries  # 40 - 2 * 10 is too little for 30
    stream(images[10:20])
    assert stream.ledger.queries["probe"] == 30  # 80 - 10 - 20 is enough for one step


def test_with_one_query_per_image_a_stream_answers_like_the_model(box, images) -> None:
    stream = Stream(box, budget=1, **SMALL)
    np.testing.assert_array_equal(np.concatenate(run(stream, images, 25, 25)), box(images))
    assert stream.ledger.queries == {"select": 50}
    for budget in (0.5, float("inf"), float("nan")):
        with pytest.raises(BudgetError, match="at least 1"):
            Stream(box, budget=budget)
    with pytest.raises(MethodError, match="give 0 or more"):
        Stream(box, seed=-1)


@pytest.mark.parametrize("budget", [None, 12])
def test_a_batch_on_which_the_model_fails_can_be_sent_again(model, images, budget) -> None:
    fails = False

    def unreliable(batch):
        if fails and len(batch) > 20:
            raise OSError("gone")
        return model(batch)

    stream = Stream(CallableBox(unreliable), budget=budget, **SMALL)
    stream(images[:15])
    theta = stream.search.theta
    queue = stream.queue
    fails = True
    with pytest.raises(BoxError, match="gone"):
        stream(images[15:30])
    assert stream.search.theta is theta
    assert stream.queue is queue
    fails = False
    assert len(stream(images[15:30])) == 15


def test_an_invalid_batch_costs_nothing(box, model, images) -> None:
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


def test_confident_images_outside_the_queue_are_learned_from_like_the_others(box, images) -> None:
    stream = Stream(box, **{**SMALL, "epochs": 1, "queue": 0, "tau": 0.0})
    stream(images)
    assert stream.ledger.queries == {"select": 50, "probe": 150, "evaluate": 50}


def test_settings_that_a_stream_does_not_have_are_refused() -> None:
    impossible = {"rho": 0.5, "lr": "auto", "epochs": 0, "arrival": 0, "queue": -1, "speed": 3}
    for name, value in impossible.items():
        with pytest.raises(MethodError):
            soda_o.but(**{name: value})
    with pytest.raises(MethodError, match="not a method for a stream"):
        Stream(lambda batch: batch, method="tent")
    assert soda_o.but(q=7, queue="500", alpha=0.1).settings["directions"] == 7
    assert soda_o.settings["epochs"] == 10
    assert "rho" not in soda_o.settings


def test_adapt_streams_the_images_in_order_and_bills_the_first_pass_once(
    box, model, images
) -> None:
    result = adapt(images, box, method=soda_o.but(arrival=20, **SMALL), seed=4)
    assert model.asked == result.ledger.total
    planned = result.card.plan["queries"]
    assert all(result.ledger.queries[purpose] <= planned[purpose] for purpose in planned)
    stream = Stream(box, seed=4, **SMALL)
    answers = np.concatenate(run(stream, images, 20, 20, 10))
    np.testing.assert_array_equal(result.probabilities, answers)
    assert stream.ledger.queries == result.ledger.queries


def test_one_batch_of_all_images_without_confident_ones_is_soda_itself(box, images) -> None:
    settings = dict(epochs=4, width=4, lr=0.3, mu=0.1, tau=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few steps
        offline = adapt(images, box, method="soda", seed=3, **settings)
    online = adapt(images, box, method=soda_o.but(arrival=50, **settings), seed=3)
    np.testing.assert_allclose(online.probabilities, offline.probabilities, atol=1e-4)
    assert np.abs(online.probabilities - online.before).max() > 0.01
    assert online.ledger.queries == offline.ledger.queries


def test_the_planned_cost_is_reached_when_the_model_is_always_confident(images) -> None:
    def confident(batch):
        chosen = (batch.mean(axis=(1, 2, 3)) * 1e6).astype(int) % 2
        return np.eye(2)[chosen] * 0.98 + 0.01

    method = soda_o.but(**{**SMALL, "arrival": 20, "queue": 1000})
    result = adapt(images, load_box(confident), method=method)
    assert result.ledger.queries == result.card.plan["queries"]


def test_a_full_queue_costs_what_the_paper_says() -> None:
    last = soda_o.queries(12_800)["probe"] - soda_o.queries(12_672)["probe"]
    assert last / 128 + 2 == pytest.approx(530, abs=2)


@pytest.mark.parametrize("budget", [1, 2, 3.3, 9])
def test_a_stream_stays_within_its_limit_at_every_step(box, model, images, budget) -> None:
    method = soda_o.but(arrival=10, **SMALL)
    before = box(images)
    ledger = Ledger(int(budget * 50))
    ledger.spend(50, "select")
    spent = [50]
    work = Work(
        images=open_images(images),
        meter=Meter(box, ledger),
        before=before,
        plan=plan_run(method, 50, budget),
        listener=lambda step: spent.append(ledger.total),
    )
    answers = method.answer(work)
    assert answers.shape == before.shape
    assert max(spent) <= ledger.limit
    assert model.asked == ledger.total <= ledger.limit == int(budget * 50)
    if budget == 9:
        assert ledger.queries["probe"] > 0


def test_a_stream_warns_of_a_model_that_rounds_its_probes_away(box, images) -> None:
    with pytest.warns(UserWarning, match="rounding noise; raise mu"):
        Stream(Quantised(box), **SMALL)(images[:10])
    with pytest.warns(UserWarning, match="rounding noise; raise mu"):
        run = adapt(images, Quantised(box), method="soda-o", **SMALL)
    assert len([text for text in run.notices if "rounding noise" in text]) == 1
