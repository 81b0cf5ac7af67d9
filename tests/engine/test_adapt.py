"""`adapt` from end to end on small boxes."""

import json
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

from soda_tta import Run, adapt, all_methods, load_box
from soda_tta.bench.measurement import epoch_losses
from soda_tta.box import CallableBox, Quantised
from soda_tta.engine.events import Answered, Epoch, Notice, Planned, Step
from soda_tta.errors import BoxError, BudgetError, ImageError, MethodError, RunError

SETTINGS = dict(epochs=3, batch=16, width=4, lr=0.05)
FAST = dict(method="soda", **SETTINGS)


@pytest.fixture(autouse=True)
def without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# dine and beta send one query per image and train long; tests/methods covers them.
BLACK_BOX = [
    name
    for name, method in all_methods().items()
    if method.needs == "probabilities" and name not in ("dine", "beta")
]
REFUSE_A_SMALL_BUDGET = (
    *("soda-auto", "da-pgd", "da-zoo-input", "soda-office-home"),
    *("tta", "zero"),
)


@pytest.mark.parametrize("method", BLACK_BOX)
@pytest.mark.parametrize("budget", [None, 1, 2.5, 9, 20])
def test_every_method_counts_exactly_the_queries_that_the_model_receives(
    images, model, method: str, budget
) -> None:
    defaults = all_methods()[method].settings
    learns = defaults.get("epochs", 1) > 1
    settings = {name: value for name, value in SETTINGS.items() if learns and name in defaults}
    if defaults.get("lr") == "auto":
        del settings["lr"]
    if method == "beta26":
        settings = {"helper": "soda_tta.testing.data:make_white_box"}
    try:
        run = adapt(images, model, method=method, budget=budget, **settings)
    except BudgetError:
        assert method in REFUSE_A_SMALL_BUDGET
        assert model.asked == 0
        return
    assert run.ledger.total == model.asked
    assert budget is None or model.asked <= budget * len(images)
    assert run.probabilities.shape == run.before.shape == (50, 4)
    # 3 epochs of 6 queries per image, and two passes
    enough = not settings or budget is None or budget >= 20
    if method == "beta26":
        enough = True  # one query per image, whatever the budget
    if method == "soda-e":
        # 50 images are few: a search on 24 of them takes more than 20 queries per image
        enough = budget is None
    assert run.stopped == ("finished" if enough else "budget")


def test_a_run_reports_how_much_its_budget_was_enough_for(images, model) -> None:
    settings = dict(arrival=10, epochs=2, width=2, q=2, batch=16, lr=0.05)
    streamed = adapt(images, model, method="soda-o", budget=6, **settings)
    steps = len(streamed.history)
    assert streamed.stopped == "budget"
    assert steps > 0
    assert streamed.reason == f"The budget of 300 queries was enough for {steps} steps."
    run = adapt(images, model, budget=10, **FAST)
    done = len(run.history) / run.history[-1].of
    assert run.reason == f"The budget of 500 queries was enough for {done:.3g} of 3 epochs."


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(images, box) -> None:
    first, second, third = (adapt(images, box, seed=seed, **FAST) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    np.testing.assert_array_equal(first.adaptor.parameters, second.adaptor.parameters)
    assert first.history == second.history
    assert np.abs(first.adaptor.parameters - third.adaptor.parameters).max() > 0


def test_learning_raises_the_mutual_information(images, box) -> None:
    run = adapt(images, box, method="soda", width=8, epochs=40, batch=50, lr=3.0)
    assert run.history[-1].mutual_information > run.history[0].mutual_information + 0.02


def test_labels_stay_aligned_under_shuffling(images) -> None:
    """The released code pairs reliable images with labels of others; here each keeps its own."""
    calls = []
    settings = {**SETTINGS, "tau": 0.3, "rho": 0.0, "mu": 1e-9, "lr": 1e-12}
    method = all_methods()["soda"].but(**settings)
    objective = method.objective

    @dataclass(frozen=True)
    class Spy:
        beta: float = 0.0

        def __call__(self, probabilities, labels, reliable):
            calls.append((probabilities, labels, reliable))
            return objective(probabilities, labels, reliable)

    def by_red(batch):  # red is 0.95 or 0.05: the adaptor hardly changes the answer
        red = (batch[:, 0].mean(axis=(1, 2)) > 0.5).astype(float)
        return np.stack([0.02 + 0.96 * red, 0.98 - 0.96 * red], axis=1)

    bright = np.where(np.arange(50) % 3 == 0, 0.95, 0.05)
    coloured = images * 0.01 + bright[:, None, None, None].astype(np.float32) * 0.99
    adapt(
        np.clip(coloured, 0, 1).astype(np.float32), by_red, method=replace(method, objective=Spy())
    )
    assert len(calls) == 3 * 4 * 6
    for probabilities, labels, reliable in calls:
        assert reliable.any()
        np.testing.assert_array_equal(probabilities.argmax(axis=1), labels)


def test_a_saved_run_loads_as_it_was(images, box, tmp_path) -> None:
    run = adapt(images, box, **FAST)
    run.save(tmp_path / "run")
    loaded = Run.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.probabilities, run.probabilities)
    np.testing.assert_array_equal(loaded.adaptor(images), run.adaptor(images))
    assert loaded.history == run.history
    assert json.loads(json.dumps(loaded.summary())) == json.loads(json.dumps(run.summary()))
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {
        "run.json",
        "history.jsonl",
        "predictions.csv",
        "adaptor.safetensors",
        "answers.safetensors",
    }
    lines = (tmp_path / "run" / "predictions.csv").read_text().splitlines()
    assert lines[0] == "image,before,before_confidence,after,after_confidence,changed"
    assert len(lines) == 51


def test_the_protocol_card_holds_every_setting(images, box) -> None:
    card = adapt(images, box, seed=5, budget=30, **FAST).summary()
    assert card["method"] == "soda" and card["seed"] == 5 and card["budget"] == 30
    assert card["settings"]["directions"] == 5 and card["settings"]["width"] == 4
    assert card["images"]["count"] == 50 and card["images"]["fingerprint"].startswith("sha256:")
    assert set(card["queries"]) == {"select", "probe", "evaluate"} and card["versions"]["numpy"]


def test_events_report_the_plan_and_then_every_query(images, box) -> None:
    events = []
    run = adapt(images, box, listener=events.append, **FAST)
    assert isinstance(events[0], Planned) and events[0].plan.total == run.ledger.total
    in_steps = sum(event.queries for event in events if isinstance(event, Step))
    passes = [event for event in events if isinstance(event, Answered) and event.done == event.of]
    assert in_steps + 50 * len(passes) == run.ledger.total


def test_the_learning_rate_is_chosen_without_labels_and_its_queries_are_counted(
    images, box
) -> None:
    run = adapt(images, box, method="soda", lr="auto", epochs=10, batch=25, width=4)
    assert run.card.chosen_lr in (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
    assert run.ledger.queries["tune"] == 50 * 6 * (5 * 1 + 3 * 1 + 2 * 3)
    assert run.history[-1].epoch == 10
    assert {step.lr for step in run.history} == {run.card.chosen_lr}


def test_the_winner_of_a_competition_equals_a_run_at_its_rate(images, box) -> None:
    settings = {"epochs": 6, "batch": 25, "width": 4}
    chosen = adapt(images, box, method="soda", lr="auto", **settings)
    specified = adapt(images, box, method="soda", lr=chosen.card.chosen_lr, **settings)
    np.testing.assert_array_equal(chosen.probabilities, specified.probabilities)
    np.testing.assert_array_equal(chosen.adaptor.parameters, specified.adaptor.parameters)


def test_a_competition_with_another_schedule_is_not_continued(
    images, box, tmp_path, monkeypatch
) -> None:
    settings = {"lr": "auto", "epochs": 20, "batch": 25, "width": 4}
    with monkeypatch.context() as patch:
        patch.setattr("soda_tta.engine.rates.RUNGS", ((0.05, 2), (0.2, 1)))
        adapt(images, box, method="soda", out=tmp_path / "run", stop=lambda: True, **settings)
    with pytest.raises(RunError, match=r"rungs: \[1, 4\] there, \[1, 4, 10\] here"):
        adapt(images, box, method="soda", out=tmp_path / "run", resume=True, **settings)


def test_the_event_of_an_epoch_holds_its_mean_loss(images, box) -> None:
    events = []
    adapt(images, box, method="soda", epochs=3, batch=20, width=4, listener=events.append)
    steps = [event for event in events if isinstance(event, Step)]
    for epoch in (event for event in events if isinstance(event, Epoch)):
        losses = [step.loss for step in steps if step.epoch == epoch.epoch]
        assert len(losses) == 3
        assert epoch.loss == pytest.approx(np.mean(losses)) != losses[-1]
    assert epoch_losses(steps) == [round(e.loss, 5) for e in events if isinstance(e, Epoch)]


def test_too_few_steps_for_the_papers_learning_rate_give_a_notice(images, box) -> None:
    events = []
    adapt(images, box, method="soda", epochs=1, listener=events.append)
    assert any(isinstance(e, Notice) and 'lr="auto"' in e.text for e in events)


def test_a_box_that_rounds_probes_away_gives_a_notice_with_a_remedy(images, box) -> None:
    events = []
    run = adapt(images, Quantised(box), listener=events.append, **FAST)
    (text,) = [e.text for e in events if isinstance(e, Notice)]
    assert "rounding noise" in text and "mu=" in text and run.notices == [text]
    larger = float(text.split("mu=")[1].rstrip(")."))
    events.clear()
    adapt(images, Quantised(box), listener=events.append, mu=larger, **FAST)
    assert not [e for e in events if isinstance(e, Notice)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: np.full((len(x), 3), np.nan), "NaN"),
        (lambda x: np.full((len(x), 3), 5.0), "logits"),
        (lambda x: np.full((len(x) + 1, 3), 1 / 3), "rows"),
        (lambda x: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_an_error_says_what_is_wrong_with_a_box(images, answer, words: str) -> None:
    with pytest.raises(BoxError, match=words):
        adapt(images, answer, **FAST)


def test_invalid_calls_fail_before_the_first_query(images, model, tmp_path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious.txt").write_text("mine")
    wrong = [
        (ImageError, dict(images=images * 3)),
        (BudgetError, dict(budget=0.5)),
        (RunError, dict(out=tmp_path / "full")),
        (MethodError, dict(seed=-1)),
        (MethodError, dict(alpha=float("nan"))),
        (BudgetError, dict(budget=float("inf"))),
        (ImageError, dict(images=images[:, :, :1, :1])),
    ]
    for kind, arguments in wrong:
        with pytest.raises(kind):
            adapt(**{"images": images, "box": model, **FAST, **arguments})
    assert model.asked == 0
    assert (tmp_path / "full" / "precious.txt").read_text() == "mine"


def test_a_large_batch_is_sent_in_pieces(images, model, monkeypatch) -> None:
    sizes = []

    def measured(batch):
        sizes.append(len(batch))
        return model(batch)

    whole = adapt(images, measured, **FAST)
    assert max(sizes) == 6 * 16
    sizes.clear()
    monkeypatch.setattr("soda_tta.engine.step.QUERY_BYTES", 6 * 5 * images[0].nbytes)
    pieces = adapt(images, measured, **FAST)
    assert max(sizes) == 50  # both passes; a step sends 6 candidates of 5 images at once
    assert sorted(sizes)[-3] == 6 * 5
    np.testing.assert_allclose(whole.probabilities, pieces.probabilities, atol=1e-4)


def test_images_from_any_source_give_the_same_run(images, box, tmp_path) -> None:
    stored = np.rint(images * 255).astype(np.uint8)
    np.save(tmp_path / "images.npy", stored.transpose(0, 2, 3, 1))
    sources = [
        stored,
        tmp_path / "images.npy",
        [(image, 0) for image in stored],
        (image for image in stored),
    ]
    first, *others = [adapt(source, box, **FAST).probabilities for source in sources]
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_a_torch_module_and_its_function_are_the_same_box(images) -> None:
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5))

    def function(batch):
        with torch.inference_mode():
            return module(torch.from_numpy(batch)).numpy()

    boxes = load_box(module, logits=True, batch=16), CallableBox(function, logits=True, batch=16)
    first, second = (adapt(images, box, **FAST) for box in boxes)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
