"""A model that fails in the middle of a run: nothing billed is lost, and the budget holds."""

import numpy as np
import pytest

from soda_tta import adapt
from soda_tta.box import CallableBox
from soda_tta.engine.events import Epoch
from soda_tta.errors import BoxError, BoxUnavailable, BudgetError

FAST = dict(method="soda", epochs=4, batch=16, width=4, lr=0.05)
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    "more", [{}, {"lr": "auto"}, {"beta": 0.01, "blocks": 1, "dropout": 0.5}], ids=str
)
@pytest.mark.parametrize("after", [0, 30, 60, 200, 700, 1200, 1290])
def test_a_failing_model_costs_at_most_the_step_under_way(
    images, model, failing, tmp_path, assert_same_files, after: int, more
) -> None:
    settings = {**FAST, "epochs": 5, **more}
    whole = adapt(images, failing, out=tmp_path / "whole", **settings)
    billed = model.asked
    model.asked = 0
    failing.most = after * billed // 1300
    with pytest.raises(BoxError, match="gone"):
        adapt(images, failing, out=tmp_path / "run", **settings)
    failing.most = np.inf
    resumed = adapt(images, failing, out=tmp_path / "run", resume=True, **settings)
    # The failed request was never answered, and nothing else is sent twice.
    assert model.asked == billed
    assert resumed.ledger.total == billed + resumed.ledger.lost
    assert_same_files(tmp_path / "whole", tmp_path / "run")
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
    assert whole.ledger.queries == resumed.ledger.queries


@pytest.mark.parametrize("budget", [None, 20])
@pytest.mark.parametrize("after", [60, 200, 500])
def test_a_stream_whose_model_fails_bills_nothing_twice(
    images, failing, tmp_path, after: int, budget
) -> None:
    settings = dict(arrival=16, epochs=2, width=4, tau=0.5, queue=12, budget=budget)
    whole = adapt(images, failing, method="soda-o", out=tmp_path / "whole", **settings)
    answered = sum(whole.ledger.queries.values())
    failing.model.asked = 0
    failing.most = after
    with pytest.raises(BoxError, match="gone"):
        adapt(images, failing, method="soda-o", out=tmp_path / "run", **settings)
    failing.most = np.inf
    resumed = adapt(images, failing, method="soda-o", out=tmp_path / "run", resume=True, **settings)
    if budget is None:
        np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
        assert whole.ledger.queries == resumed.ledger.queries
    else:  # only the failed request is lost to the budget
        assert resumed.ledger.total <= budget * len(images)
        lost = resumed.ledger.lost
        assert sum(resumed.ledger.queries.values()) >= answered - 3 * lost
    assert resumed.ledger.lost <= 6 * 28  # one step: a batch and the queue, at every candidate


def test_a_resumed_run_counts_the_queries_of_its_epochs_as_an_unbroken_one(
    images, model, failing, tmp_path
) -> None:
    queries: dict[str, dict[int, int]] = {"whole": {}, "run": {}}

    def listener(name: str):
        def receive(event) -> None:
            if isinstance(event, Epoch):
                queries[name][event.epoch] = event.queries

        return receive

    adapt(images, failing, out=tmp_path / "whole", listener=listener("whole"), **FAST)
    failing.most = model.asked // 2
    model.asked = 0
    out = tmp_path / "run"
    with pytest.raises(BoxError, match="gone"):
        adapt(images, failing, out=out, listener=listener("run"), **FAST)
    failing.most = np.inf
    resumed = adapt(images, failing, out=out, resume=True, listener=listener("run"), **FAST)
    assert queries["run"] == queries["whole"]
    assert resumed.ledger.lost


def test_the_budget_holds_over_interruptions(images, model, tmp_path) -> None:
    steps = iter(range(100))
    adapt(images, model, budget=12, out=tmp_path / "run", stop=lambda: next(steps) == 2, **FAST)
    adapt(images, model, budget=12, out=tmp_path / "run", resume=True, **FAST)
    assert model.asked <= 12 * len(images)


class LosingModel:
    """Answers, but every third response is lost on its way: it is billed and never received."""

    def __init__(self, model) -> None:
        self.model = model
        self.calls = 0

    def __call__(self, images):
        self.calls += 1
        rows = self.model(images)
        if self.calls % 3 == 0:
            raise BoxError("the response was lost")
        return rows


def test_the_budget_is_never_exceeded_even_when_billed_responses_are_lost(
    images, model, tmp_path
) -> None:
    losing = LosingModel(model)
    resume = False
    for _ in range(60):
        try:
            run = adapt(images, losing, budget=20, out=tmp_path / "run", resume=resume, **FAST)
            break
        except BoxError:
            resume = True
    assert model.asked <= 20 * len(images)
    assert run.ledger.total == model.asked
    assert run.ledger.lost > 0
    assert run.stopped == "budget"
    steps = len(run.history) / run.history[-1].of
    assert run.reason.endswith(f"was enough for {steps:.3g} of {FAST['epochs']} epochs.")
    assert run.probabilities.shape == (50, 4)


def test_the_ledger_refuses_to_overspend_even_if_the_plan_is_wrong(
    images, model, monkeypatch
) -> None:
    monkeypatch.setattr(
        "soda_tta.engine.training_plan.TrainingPlan._whole_steps", lambda plan: 10**9
    )
    monkeypatch.setattr("soda_tta.engine.loop.Training._affordable", lambda *a: True)
    with pytest.raises(BudgetError):
        adapt(images, model, budget=5, **FAST)
    assert model.asked <= 5 * len(images)


@pytest.mark.parametrize(("first", "then"), [(16, 512), (512, 16), (16, 24)])
def test_requests_of_another_size_continue_after_what_is_billed(
    model, failing, tmp_path, first: int, then: int
) -> None:
    images = np.random.default_rng(0).random((1000, 3, 8, 8), dtype=np.float32)
    answers = adapt(images, CallableBox(failing), method="deployed").probabilities
    model.asked = 0
    failing.most = 848
    out = tmp_path / "run"
    with pytest.raises(BoxError):
        adapt(images, CallableBox(failing, batch=first), method="deployed", out=out)
    failing.most = np.inf
    run = adapt(images, CallableBox(failing, batch=then), method="deployed", out=out, resume=True)
    assert model.asked == 1000  # none twice
    np.testing.assert_allclose(run.probabilities, answers, atol=1e-6)


def unreachable(images):
    raise BoxUnavailable("connection refused", sent=False)


def test_a_first_request_that_reaches_nobody_leaves_the_folder_as_it_was(
    images, tmp_path, monkeypatch
) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    for out in (".", tmp_path / "own", tmp_path / "new"):
        with pytest.raises(BoxError, match="refused"):
            adapt(images, unreachable, out=out, **FAST)
    assert not list((tmp_path / "own").iterdir())
    assert not (tmp_path / "new").exists()


def test_what_a_failed_start_has_sent_counts_against_the_budget_of_the_next(
    images, model, failing, tmp_path
) -> None:
    out = tmp_path / "run"
    failing.most = 0
    for starts in (1, 2):
        with pytest.raises(BoxError, match="gone"):
            adapt(images, failing, out=out, method="deployed", budget=3)
        assert not (out / "run.json").exists()  # the options may be wrong, so they may change
        assert (out / "working" / "ledger.txt").read_text().count("select 50\n") == starts
    with pytest.raises(BoxError, match="gone"):
        adapt(images, failing, out=out, method="deployed", budget=3)
    failing.most = np.inf
    with pytest.raises(BudgetError, match=r"150 are spent .150 of them without a response"):
        adapt(images, failing, out=out, method="deployed", budget=3)
    assert model.asked == 0
    run = adapt(images, failing, out=out, method="deployed", budget=4)
    assert run.ledger.by_purpose() == {"select": 50, "lost": 150}


def test_a_temporary_file_left_by_a_kill_is_removed(images, failing, tmp_path) -> None:
    failing.most = 60
    with pytest.raises(BoxError, match="gone"):
        adapt(images, failing, out=tmp_path / "run", **FAST)
    (tmp_path / "run" / ".history.jsonl.123.tmp").write_text("{")
    failing.most = np.inf
    adapt(images, failing, out=tmp_path / "run", resume=True, **FAST)
    assert not list((tmp_path / "run").glob(".*"))
