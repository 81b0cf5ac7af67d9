"""`stop` means the same for every method: a run with what is there so far, ready to resume."""

import numpy as np
import pytest
import torch

from soda_tta import Run, adapt, all_methods, load_box
from soda_tta.adaptors import Identity
from soda_tta.engine.events import Answered, Step

FAST = dict(method="soda", epochs=4, batch=16, width=4, lr=0.05)
TRAINED = dict(epochs=2, batch=16, width=4, lr=0.05)
DISTILLED = dict(epochs=2, finetune_epochs=1, batch=16)
OFFICE_HOME = dict(epochs=2, warmup=1, batch=16, width=4)
SETTINGS = {
    "deployed": {},
    "soda-e": {},
    "soda": TRAINED,
    "soda-auto": dict(epochs=4, batch=25, width=4),
    "soda-o": dict(arrival=20, epochs=2, width=2, q=2, queue=40, batch=16, lr=0.05),
    "da-pl": TRAINED,
    "da-direct": TRAINED,
    "da-pgd": dict(epochs=2, batch=16),
    "da-zoo-input": dict(epochs=2, batch=16, width=4),
    "dine": DISTILLED,
    "beta": DISTILLED,
    "tta": dict(views=2, batch=16),
    "zero": dict(views=4, batch=16),
    "beta26": dict(batch=16, helper="soda_tta.testing.data:make_white_box"),
    "lame": {},
    "soda-fo": TRAINED,
    "soda-r": TRAINED,
    "ma-so": dict(epochs=2, batch=16, lr=0.05),
    "bn": dict(batch=25),
    "tent": dict(batch=16),
    "soda-office-home": OFFICE_HOME,
    "soda-r-office-home": OFFICE_HOME,
}
WITHOUT_STEPS = ("deployed", "lame", "bn")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def box_for(model):
    """A function that gives the model a method needs: one that counts, or a PyTorch module."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(144, 4),
    ).eval()

    def choose(method: str):
        is_black = all_methods()[method].needs == "probabilities"
        return model if is_black else load_box(module, logits=True)

    return choose


@pytest.fixture
def three_pieces(monkeypatch) -> None:
    """A pass over 50 images takes three pieces: 20, 20 and 10 images."""
    monkeypatch.setattr("soda_tta.data.images.AT_ONCE_FLOATS", 3 * 64 * 20)


def after_steps(count: int):
    """A `stop` that asks to stop after so many steps, and the listener that counts them."""
    steps = []

    def listener(event) -> None:
        if isinstance(event, Step):
            steps.append(event)

    return dict(stop=lambda: len(steps) >= count, listener=listener)


def assert_equal_runs(first: Run, second: Run) -> None:
    np.testing.assert_array_equal(first.before, second.before)
    np.testing.assert_array_equal(first.after, second.after)
    np.testing.assert_array_equal(first.adaptor.parameters, second.adaptor.parameters)
    assert first.history == second.history
    assert first.ledger.queries == second.ledger.queries
    assert (first.stopped, first.reason) == (second.stopped, second.reason)
    assert first.card == second.card


def test_the_table_holds_every_method() -> None:
    assert list(SETTINGS) == list(all_methods())


@pytest.mark.parametrize("method", [name for name in SETTINGS if name not in WITHOUT_STEPS])
def test_every_method_stops_after_its_first_step_and_resumes_bit_for_bit(
    images, model, box_for, assert_same_files, tmp_path, method: str
) -> None:
    box = box_for(method)
    settings = SETTINGS[method]
    whole = adapt(images, box, method=method, out=tmp_path / "whole", **settings)
    billed = model.asked
    model.asked = 0
    out = tmp_path / "run"
    stopped = adapt(images, box, method=method, out=out, **after_steps(1), **settings)
    assert stopped.stopped == "interrupted"
    assert stopped.after is None
    assert len(stopped.history) == 1
    assert stopped.reason.startswith("Stopped by request after 1 step")
    np.testing.assert_array_equal(stopped.before, whole.before)
    np.testing.assert_array_equal(stopped.probabilities, whole.before)
    if model.asked:
        assert stopped.ledger.total == model.asked
    assert Run.load(out).stopped == "interrupted"
    resumed = adapt(images, box, method=method, out=out, resume=True, **settings)
    assert resumed.stopped == "finished"
    assert model.asked == billed
    assert resumed.ledger.lost == 0
    assert_equal_runs(resumed, whole)
    assert_same_files(tmp_path / "whole", out)


@pytest.mark.parametrize("method", WITHOUT_STEPS)
def test_methods_without_steps_have_nothing_to_stop_after_the_first_pass(
    images, box_for, method: str
) -> None:
    passes = []

    def listener(event) -> None:
        if isinstance(event, Answered) and event.done == event.of:
            passes.append(event)

    run = adapt(
        images,
        box_for(method),
        method=method,
        stop=lambda: bool(passes),
        listener=listener,
        **SETTINGS[method],
    )
    assert passes
    assert run.history == []
    assert run.stopped == "finished"


@pytest.mark.usefixtures("three_pieces")
@pytest.mark.parametrize("method", [name for name in SETTINGS if name != "beta26"])
def test_every_method_stops_in_its_first_pass_and_resumes_bit_for_bit(
    images, model, box_for, assert_same_files, tmp_path, method: str
) -> None:
    box = box_for(method)
    settings = SETTINGS[method]
    whole = adapt(images, box, method=method, out=tmp_path / "whole", **settings)
    billed = model.asked
    model.asked = 0
    out = tmp_path / "run"
    stopped = adapt(images, box, method=method, out=out, stop=lambda: True, **settings)
    assert stopped.stopped == "interrupted"
    assert stopped.reason == "Stopped during the first pass."
    assert stopped.after is None
    assert stopped.history == []
    assert isinstance(stopped.adaptor, Identity)
    assert stopped.ledger.total == 20
    np.testing.assert_array_equal(stopped.before[:20], whole.before[:20])
    assert stopped.before.shape == whole.before.shape
    assert np.isnan(stopped.before[20:]).all()
    saved = Run.load(out)
    assert saved.stopped == "interrupted"
    np.testing.assert_array_equal(saved.before, stopped.before)
    resumed = adapt(images, box, method=method, out=out, resume=True, **settings)
    assert resumed.stopped == "finished"
    assert model.asked == billed
    assert resumed.ledger.lost == 0
    assert_equal_runs(resumed, whole)
    assert_same_files(tmp_path / "whole", out)


@pytest.mark.usefixtures("three_pieces")
def test_a_run_may_be_stopped_in_every_phase_before_it_ends(
    images, model, assert_same_files, tmp_path
) -> None:
    whole = adapt(images, model, out=tmp_path / "whole", **FAST)
    billed = model.asked
    model.asked = 0
    out = tmp_path / "run"
    run = adapt(images, model, out=out, stop=lambda: True, **FAST)
    interruptions = 0
    while run.stopped == "interrupted":
        interruptions += 1
        chances = iter(range(1000))
        wait = 3 * interruptions  # stops later and later: in the passes and among the steps
        run = adapt(
            images,
            model,
            out=out,
            resume=True,
            stop=lambda: next(chances) >= wait,  # noqa: B023 - called before the next iteration
            **FAST,
        )
    assert interruptions >= 3
    assert model.asked == billed
    assert_equal_runs(run, whole)
    assert_same_files(tmp_path / "whole", out)


def test_a_stopped_run_keeps_its_best_adaptor_and_the_time_of_both_processes(
    images, box, assert_same_files, tmp_path
) -> None:
    whole = adapt(images, box, out=tmp_path / "whole", **FAST)
    out = tmp_path / "run"
    stopped = adapt(images, box, out=out, **after_steps(10), **FAST)
    assert stopped.stopped == "interrupted"
    assert stopped.after is None
    assert len(stopped.history) == 10
    assert "the best adaptor so far is kept" in stopped.reason
    (out / "working" / "seconds.txt").write_text("1000.5")
    resumed = adapt(images, box, out=out, resume=True, **FAST)
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
    assert_same_files(tmp_path / "whole", out)
    assert resumed.seconds > 1000.5 > whole.seconds


def test_a_stop_without_a_folder_returns_the_same_run(images, box, tmp_path) -> None:
    kept = adapt(images, box, out=tmp_path / "run", **after_steps(6), **FAST)
    in_memory = adapt(images, box, **after_steps(6), **FAST)
    assert in_memory.stopped == "interrupted"
    assert in_memory.history == kept.history
    np.testing.assert_array_equal(in_memory.adaptor.parameters, kept.adaptor.parameters)


def test_a_stop_in_the_final_pass_keeps_the_adaptor(box, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("soda_tta.data.images.AT_ONCE_FLOATS", 3 * 64 * 20)  # 20 images per piece
    many = np.random.default_rng(0).random((60, 3, 8, 8), dtype=np.float32)
    whole = adapt(many, box, out=tmp_path / "whole", **FAST)
    # `stop` is asked after each step, and between the pieces of both passes.
    calls = len(whole.history) + 2 + 1
    numbers = iter(range(1, 1000))
    run = adapt(many, box, out=tmp_path / "run", stop=lambda: next(numbers) == calls, **FAST)
    assert run.stopped == "interrupted"
    assert run.after is None
    np.testing.assert_array_equal(run.adaptor.parameters, whole.adaptor.parameters)
    assert (tmp_path / "run" / "adaptor.safetensors").exists()
    resumed = adapt(many, box, out=tmp_path / "run", resume=True, **FAST)
    np.testing.assert_array_equal(resumed.probabilities, whole.probabilities)
