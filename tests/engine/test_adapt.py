"""`adapt` from end to end on small boxes."""

import json
import warnings

import numpy as np
import pytest

from soda_tta import Run, adapt, all_methods, load_box
from soda_tta.bench.measurement import epoch_losses
from soda_tta.box import CallableBox, Quantised
from soda_tta.engine.events import Answered, Epoch, Notice, Planned, Step
from soda_tta.errors import BoxError, BudgetError, ImageError, MethodError, RunError

NUMBERS = dict(epochs=3, batch=16, width=4, lr=0.05)
FAST = dict(method="soda", **NUMBERS)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


ASKING = [
    name
    for name, method in all_methods().items()
    if method.needs == "probabilities" and name not in ("dine", "beta")
]


@pytest.mark.parametrize(
    "method", ASKING
)  # dine and beta ask once and train long: tests/test_methods_table.py
@pytest.mark.parametrize("budget", [None, 1, 2.5, 9, 20])
def test_every_method_counts_exactly_what_the_model_was_asked(
    images, model, method: str, budget
) -> None:
    known = all_methods()[method].settings
    settings = {
        name: value
        for name, value in NUMBERS.items()
        if name in known and known.get("epochs", 1) > 1
    }
    if known.get("lr") == "auto":
        del settings["lr"]
    try:
        run = adapt(images, model, method=method, budget=budget, **settings)
    except BudgetError:
        assert (
            method in ("soda-auto", "da-pgd", "da-zoo-input", "soda-office-home")
            and model.asked == 0
        )
        return
    assert run.ledger.total == model.asked
    assert budget is None or model.asked <= budget * len(images)
    assert run.probabilities.shape == run.before.shape == (50, 4)
    enough = (
        not settings or budget is None or budget >= 20
    )  # 3 epochs x 6, a first look, the answer
    if method == "soda-e":
        enough = (
            budget is None
        )  # 50 images are few: a search on 24 of them takes more than 20 queries each
    assert run.stopped == ("finished" if enough else "budget")


def test_a_run_says_how_far_its_budget_reached(images, model) -> None:
    streamed = adapt(
        images,
        model,
        method="soda-o",
        budget=6,
        arrival=10,
        epochs=2,
        width=2,
        q=2,
        batch=16,
        lr=0.05,
    )
    assert streamed.stopped == "budget" and len(streamed.history) > 0
    assert (
        streamed.reason == f"The budget of 300 queries reached for {len(streamed.history)} steps."
    )
    run = adapt(images, model, budget=10, **FAST)
    done = len(run.history) / run.history[-1].of
    assert (
        run.reason
        == f"The budget of 500 queries reached for {done:.3g} of {FAST['epochs']} epochs."
    )


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(images, box) -> None:
    first, second, third = (adapt(images, box, seed=seed, **FAST) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    np.testing.assert_array_equal(first.adaptor.parameters, second.adaptor.parameters)
    assert first.history == second.history
    assert np.abs(first.adaptor.parameters - third.adaptor.parameters).max() > 0


def test_learning_raises_the_mutual_information(images, box) -> None:
    run = adapt(images, box, method="soda", width=8, epochs=40, batch=50, lr=3.0)
    assert run.history[-1].mutual_information > run.history[0].mutual_information + 0.02


def test_labels_stay_aligned_under_shuffling(images) -> None:
    """The released code pairs reliable images with the labels of others; here each keeps its own."""
    seen = []

    class Spy:
        beta = 0.0

        def __call__(self, probabilities, labels, reliable):
            seen.append((probabilities, labels, reliable))
            return real(probabilities, labels, reliable)

    from dataclasses import replace

    recipe = all_methods()["soda"].but(
        **{**NUMBERS, "tau": 0.3, "rho": 0.0, "mu": 1e-9, "lr": 1e-12}
    )
    real = recipe.objective
    recipe = replace(recipe, objective=Spy())

    def by_red(batch):  # hardly depends on what the adaptor does to it: red is 0.9 or 0.1
        red = (batch[:, 0].mean(axis=(1, 2)) > 0.5).astype(float)
        return np.stack([0.02 + 0.96 * red, 0.98 - 0.96 * red], axis=1)

    bright = np.where(np.arange(50) % 3 == 0, 0.95, 0.05)
    coloured = images * 0.01 + bright[:, None, None, None].astype(np.float32) * 0.99
    adapt(np.clip(coloured, 0, 1).astype(np.float32), by_red, method=recipe)
    assert len(seen) == 3 * 4 * 6
    for probabilities, labels, reliable in seen:
        assert reliable.any()
        np.testing.assert_array_equal(probabilities.argmax(axis=1), labels)


def test_a_run_survives_the_disk(images, box, tmp_path) -> None:
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
    assert (
        lines[0] == "image,before,before_confidence,after,after_confidence,changed"
        and len(lines) == 51
    )


def test_the_protocol_card_holds_every_number(images, box) -> None:
    card = adapt(images, box, seed=5, budget=30, **FAST).summary()
    assert card["method"] == "soda" and card["seed"] == 5 and card["budget"] == 30
    assert card["settings"]["directions"] == 5 and card["settings"]["width"] == 4
    assert card["images"]["count"] == 50 and card["images"]["fingerprint"].startswith("sha256:")
    assert set(card["queries"]) == {"select", "probe", "evaluate"} and card["versions"]["numpy"]


def test_events_tell_the_plan_then_every_query(images, box) -> None:
    events = []
    run = adapt(images, box, listener=events.append, **FAST)
    assert isinstance(events[0], Planned) and events[0].plan.total == run.ledger.total
    asked = sum(e.queries for e in events if isinstance(e, Step)) + sum(
        50 for e in events if isinstance(e, Answered) and e.done == e.of
    )
    assert asked == run.ledger.total


def test_the_learning_rate_is_chosen_without_labels_and_paid_for(images, box) -> None:
    run = adapt(images, box, method="soda", lr="auto", epochs=10, batch=25, width=4)
    assert run.card["chosen_lr"] in (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
    assert run.ledger.queries["tune"] == 50 * 6 * (5 * 1 + 3 * 1 + 2 * 3)
    assert run.history[-1].epoch == 10 and {step.lr for step in run.history} == {
        run.card["chosen_lr"]
    }


def test_the_winner_of_a_race_is_the_run_at_its_rate(images, box) -> None:
    settings = {"epochs": 6, "batch": 25, "width": 4}
    raced = adapt(images, box, method="soda", lr="auto", **settings)
    told = adapt(images, box, method="soda", lr=raced.card["chosen_lr"], **settings)
    np.testing.assert_array_equal(raced.probabilities, told.probabilities)
    np.testing.assert_array_equal(raced.adaptor.parameters, told.adaptor.parameters)


def test_a_race_begun_under_another_schedule_is_not_continued(
    images, box, tmp_path, monkeypatch
) -> None:
    settings = {"lr": "auto", "epochs": 20, "batch": 25, "width": 4}
    with monkeypatch.context() as patch:
        patch.setattr("soda_tta.engine.plan.RUNGS", ((0.05, 2), (0.2, 1)))
        patch.setattr("soda_tta.engine.adapt.RUNGS", ((0.05, 2), (0.2, 1)))
        adapt(images, box, method="soda", out=tmp_path / "run", stop=lambda: True, **settings)
    with pytest.raises(RunError, match=r"rungs: \[1, 4\] there, \[1, 4, 10\] here"):
        adapt(images, box, method="soda", out=tmp_path / "run", resume=True, **settings)


def test_an_epoch_is_told_with_its_mean_loss(images, box) -> None:
    events = []
    adapt(images, box, method="soda", epochs=3, batch=20, width=4, listener=events.append)
    steps = [event for event in events if isinstance(event, Step)]
    for epoch in (event for event in events if isinstance(event, Epoch)):
        of = [step.loss for step in steps if step.epoch == epoch.epoch]
        assert len(of) == 3 and epoch.loss == pytest.approx(np.mean(of)) and epoch.loss != of[-1]
    assert epoch_losses(steps) == [round(e.loss, 5) for e in events if isinstance(e, Epoch)]


def test_too_few_steps_for_the_papers_learning_rate_are_noticed(images, box) -> None:
    events = []
    adapt(images, box, method="soda", epochs=1, listener=events.append)
    assert any(isinstance(e, Notice) and "lr=auto" in e.text for e in events)


def test_a_box_that_rounds_away_the_probes_is_noticed_with_the_remedy(images, box) -> None:
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
def test_a_box_that_misbehaves_is_named(images, answer, words: str) -> None:
    with pytest.raises(BoxError, match=words):
        adapt(images, answer, **FAST)


def test_bad_calls_fail_before_the_first_query(images, model, tmp_path) -> None:
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


def test_images_that_do_not_fit_one_piece_are_asked_in_several(images, model, monkeypatch) -> None:
    whole = adapt(images, model, **FAST)
    monkeypatch.setattr("soda_tta.engine.step.QUERY_BYTES", 6 * 5 * images[0].nbytes)
    pieces = adapt(images, model, **FAST)
    np.testing.assert_allclose(whole.probabilities, pieces.probabilities, atol=1e-4)


def test_any_route_in_gives_the_same_run(images, box, tmp_path) -> None:
    stored = np.rint(images * 255).astype(np.uint8)
    np.save(tmp_path / "images.npy", stored.transpose(0, 2, 3, 1))
    routes = [
        stored,
        tmp_path / "images.npy",
        [(image, 0) for image in stored],
        (image for image in stored),
    ]
    first, *others = [adapt(route, box, **FAST).probabilities for route in routes]
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
