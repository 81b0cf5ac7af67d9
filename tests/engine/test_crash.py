"""Killed, interrupted, out of disk, out of model: nothing paid is lost."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from soda_tta import Run, adapt
from soda_tta.box import CallableBox
from soda_tta.engine.events import Answered, Epoch
from soda_tta.errors import BoxError, BudgetError, RunError

FAST = dict(method="soda", epochs=4, batch=16, width=4, lr=0.05)
pytestmark = pytest.mark.filterwarnings("ignore")


class Dying(Exception):
    """Stands for SIGKILL where the test must stay alive: nothing in the package may catch it."""


class DyingModel:
    def __init__(self, model, after: int) -> None:
        self.model, self.after = model, after

    def __call__(self, images):
        if self.model.asked + len(images) > self.after:
            raise BoxError("the model is gone")
        return self.model(images)


# The same name for the box, so that a resumed run recognises it.
class Relay:
    def __init__(self) -> None:
        self.target = None

    def __call__(self, images):
        return self.target(images)


@pytest.mark.parametrize(
    "more", [{}, {"lr": "auto"}, {"beta": 0.01, "blocks": 1, "dropout": 0.5}], ids=str
)
@pytest.mark.parametrize("after", [0, 30, 60, 200, 700, 1200, 1290])
def test_a_box_that_dies_halfway_costs_at_most_the_step_under_way(
    images, model, tmp_path, after: int, more
) -> None:
    settings = {**FAST, "epochs": 5, **more}
    relay = Relay()
    relay.target = model
    whole = adapt(images, relay, out=tmp_path / "whole", **settings)
    paid, model.asked = model.asked, 0
    relay.target = DyingModel(model, after * paid // 1300)
    with pytest.raises(BoxError, match="gone"):
        adapt(images, relay, out=tmp_path / "run", **settings)
    relay.target = model
    resumed = adapt(images, relay, out=tmp_path / "run", resume=True, **settings)
    assert (
        model.asked == paid
    )  # the dead request was never answered, and nothing else is asked twice
    assert resumed.ledger.total == paid + resumed.ledger.lost
    assert same_files(tmp_path / "whole", tmp_path / "run")
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
    assert whole.ledger.queries == resumed.ledger.queries


def same_files(first: Path, second: Path) -> bool:
    names = sorted(path.name for path in first.iterdir())
    assert names == sorted(path.name for path in second.iterdir())
    for name in names:
        if name != "run.json":
            assert (first / name).read_bytes() == (second / name).read_bytes(), name
    one, two = (json.loads((folder / "run.json").read_text()) for folder in (first, second))
    for card in (one, two):
        card.pop("seconds")
        card["queries"].pop("lost", None)  # what was under way at a kill is paid, and owned up to
        card.pop("queries_per_image")
    assert one == two
    return True


SCRIPT = """
import sys, warnings, numpy as np
from soda_tta import adapt
warnings.simplefilter("ignore")
weights = np.random.default_rng(7).normal(size=(3, 4))
def model(images):
    open(sys.argv[2], "a").write(f"{len(images)}\\n")
    e = np.exp(8 * (images.mean(axis=(2, 3)) - 0.5) @ weights)
    return e / e.sum(axis=1, keepdims=True)
images = np.random.default_rng(3).random((600, 3, 8, 8), dtype=np.float32)
adapt(images, model, method="soda", out=sys.argv[1], resume="resume" in sys.argv, epochs=6, batch=64, width=4, lr=0.05)
"""


def test_sigkill_at_any_moment_then_resume_ends_bit_for_bit_the_same(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def start(folder: str, asked: str, *more: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, script, tmp_path / folder, tmp_path / asked, *more]
        )

    assert start("whole", "asked-whole").wait() == 0
    kills, more = 0, ()
    for patience in (
        0.0,
        0.02,
        0.1,
        0.2,
        0.05,
        0.3,
        0.1,
    ):  # killed again and again, at moments that vary
        process = start("run", "asked", *more)
        known = lines(tmp_path / "asked")
        while process.poll() is None and lines(tmp_path / "asked") == known:  # it has begun to ask
            time.sleep(0.002)
        time.sleep(patience)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        more = ("resume",) if (tmp_path / "run" / "run.json").exists() else ()
    assert start("run", "asked", *more).wait() == 0
    assert kills >= 3
    assert same_files(tmp_path / "whole", tmp_path / "run")
    paid, needed = total(tmp_path / "asked"), total(tmp_path / "asked-whole")
    owned = sum(json.loads((tmp_path / "run" / "run.json").read_text())["queries"].values())
    assert paid <= owned  # nothing the model was asked is missing from the ledger
    assert (
        needed <= paid <= needed + kills * 600
    )  # at each kill, at most the request under way is lost


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def total(path: Path) -> int:
    return sum(int(line) for line in path.read_text().split())


def test_stop_keeps_the_best_adaptor_and_resume_goes_on(images, box, tmp_path) -> None:
    whole = adapt(images, box, out=tmp_path / "whole", **FAST)
    steps = iter(range(100))
    stopped = adapt(images, box, out=tmp_path / "run", stop=lambda: next(steps) == 9, **FAST)
    assert stopped.stopped == "interrupted" and stopped.after is None and len(stopped.history) == 10
    assert Run.load(tmp_path / "run").stopped == "interrupted"
    (tmp_path / "run" / "working" / "seconds.txt").write_text("1000.5")
    resumed = adapt(images, box, out=tmp_path / "run", resume=True, **FAST)
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
    assert same_files(tmp_path / "whole", tmp_path / "run")
    assert resumed.seconds > 1000.5 > whole.seconds  # of both processes


def test_resuming_a_finished_run_asks_nothing(images, model, tmp_path) -> None:
    run = adapt(images, model, out=tmp_path / "run", **FAST)
    asked = model.asked
    again = adapt(images, model, out=tmp_path / "run", resume=True, **FAST)
    assert model.asked == asked
    np.testing.assert_array_equal(run.probabilities, again.probabilities)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 1}, "seed"),
        ({"q": 7}, "directions"),
        ({"budget": 30}, "budget"),
        ({"method": "deployed"}, "method"),
    ],
)
def test_a_run_of_another_kind_is_not_resumed(images, model, tmp_path, change, words: str) -> None:
    adapt(images, model, out=tmp_path / "run", **FAST)
    settings = {} if "method" in change else FAST
    with pytest.raises(RunError, match=words):
        adapt(images, model, out=tmp_path / "run", resume=True, **{**settings, **change})
    with pytest.raises(RunError, match="fingerprint"):
        adapt(images[::-1], model, out=tmp_path / "run", resume=True, **FAST)
    with pytest.raises(RunError, match="box"):
        adapt(images, lambda x: model(x), out=tmp_path / "run", resume=True, **FAST)
    with pytest.raises(RunError, match="--resume"):
        adapt(images, model, out=tmp_path / "run", **FAST)


def test_a_damaged_checkpoint_or_card_is_named(images, box, tmp_path) -> None:
    adapt(images, box, out=tmp_path / "run", stop=lambda: True, **FAST)
    checkpoint = tmp_path / "run" / "working" / "lr-0.05" / "checkpoint.safetensors"
    checkpoint.write_bytes(b"not a checkpoint")
    with pytest.raises(RunError, match="checkpoint"):
        adapt(images, box, out=tmp_path / "run", resume=True, **FAST)
    (tmp_path / "run" / "run.json").write_text('{"format": 99}')
    with pytest.raises(RunError, match="another version"):
        adapt(images, box, out=tmp_path / "run", resume=True, **FAST)


def test_a_torn_last_line_of_the_journal_is_asked_again(images, model, tmp_path) -> None:
    whole = adapt(images, model, out=tmp_path / "whole", **FAST)
    steps = iter(range(100))
    adapt(images, model, out=tmp_path / "run", stop=lambda: next(steps) == 5, **FAST)
    journal = tmp_path / "run" / "working" / "lr-0.05" / "history.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    resumed = adapt(images, model, out=tmp_path / "run", resume=True, **FAST)
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)


def test_the_budget_holds_over_interruptions(images, model, tmp_path) -> None:
    steps = iter(range(100))
    adapt(images, model, budget=12, out=tmp_path / "run", stop=lambda: next(steps) == 2, **FAST)
    adapt(images, model, budget=12, out=tmp_path / "run", resume=True, **FAST)
    assert model.asked <= 12 * len(images)


class Flaky:
    """Answers, and then loses the connection before the answer arrives: the worst case for whoever pays."""

    def __init__(self, model) -> None:
        self.model, self.calls = model, 0

    def __call__(self, images):
        self.calls += 1
        rows = self.model(images)
        if self.calls % 3 == 0:
            raise BoxError("the answer was lost")
        return rows


def test_a_resumed_run_counts_its_epochs_queries_as_an_unbroken_one(
    images, model, tmp_path
) -> None:
    relay, told = Relay(), {"whole": {}, "run": {}}
    relay.target = model

    def listener(name: str):
        return lambda event: (
            told[name].update({event.epoch: event.queries}) if isinstance(event, Epoch) else None
        )

    adapt(images, relay, out=tmp_path / "whole", listener=listener("whole"), **FAST)
    paid, model.asked = model.asked, 0
    relay.target = DyingModel(model, paid // 2)
    with pytest.raises(BoxError, match="gone"):
        adapt(images, relay, out=tmp_path / "run", listener=listener("run"), **FAST)
    relay.target = model
    resumed = adapt(
        images, relay, out=tmp_path / "run", resume=True, listener=listener("run"), **FAST
    )
    assert told["run"] == told["whole"] and resumed.ledger.lost


def test_the_budget_is_never_exceeded_even_when_paid_answers_are_lost(
    images, model, tmp_path
) -> None:
    flaky, resume = Flaky(model), False
    for _ in range(60):
        try:
            run = adapt(images, flaky, budget=20, out=tmp_path / "run", resume=resume, **FAST)
            break
        except BoxError:
            resume = True
    assert model.asked <= 20 * len(images)
    assert run.ledger.total == model.asked and run.ledger.lost > 0
    steps = len(run.history) / run.history[-1].of
    assert run.stopped == "budget" and run.reason.endswith(
        f"reached for {steps:.3g} of {FAST['epochs']} epochs."
    )
    assert run.probabilities.shape == (50, 4)


def test_a_kill_before_the_first_query_can_be_started_again_either_way(
    images, box, tmp_path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".run.json.123.tmp").write_text("{")
    assert adapt(images, box, out=tmp_path / "run", resume=True, **FAST).stopped == "finished"
    assert adapt(images, box, out=tmp_path / "other", resume=True, **FAST).stopped == "finished"


def test_one_run_is_not_paid_twice_at_once(images, model, tmp_path) -> None:
    def refused() -> None:
        for resume in (True, False):
            with pytest.raises(RunError, match="another process is working on the run"):
                adapt(images, model, out=tmp_path / "run", resume=resume, **FAST)

    def meanwhile(batch):
        refused()
        return model(batch)

    run = adapt(images, meanwhile, out=tmp_path / "run", **FAST)
    assert run.stopped == "finished" and model.asked == run.ledger.total


@pytest.mark.parametrize(("first", "then"), [(16, 512), (512, 16), (16, 24)])
def test_requests_of_another_size_go_on_from_what_is_paid(
    model, tmp_path, first: int, then: int
) -> None:
    images, relay = np.random.default_rng(0).random((1000, 3, 8, 8), dtype=np.float32), Relay()
    relay.target = model
    answers = adapt(images, CallableBox(relay), method="deployed").probabilities
    model.asked, relay.target = 0, DyingModel(model, 848)
    with pytest.raises(BoxError):
        adapt(images, CallableBox(relay, batch=first), method="deployed", out=tmp_path / "run")
    relay.target = model
    run = adapt(
        images, CallableBox(relay, batch=then), method="deployed", out=tmp_path / "run", resume=True
    )
    assert model.asked == 1000  # none twice
    np.testing.assert_allclose(run.probabilities, answers, atol=1e-6)


def test_a_first_request_that_fails_leaves_the_folder_as_it_was(
    images, model, tmp_path, monkeypatch
) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    for out in (".", tmp_path / "own", tmp_path / "new"):
        with pytest.raises(BoxError, match="gone"):
            adapt(images, DyingModel(model, 0), out=out, **FAST)
    assert not list((tmp_path / "own").iterdir()) and not (tmp_path / "new").exists()


def test_what_stands_where_a_run_should_go_is_named(images, box, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    for out in ("file", "file/run"):
        with pytest.raises(RunError, match="choose another --out"):
            adapt(images, box, out=tmp_path / out, **FAST)


def test_a_run_of_a_version_that_listed_numbers_which_did_nothing_goes_on(
    images, box, tmp_path
) -> None:
    made = adapt(images, box, method="lame", out=tmp_path / "run")
    card = json.loads((tmp_path / "run" / "run.json").read_text())
    card["settings"]["epochs"] = 1
    (tmp_path / "run" / "run.json").write_text(json.dumps(card))
    assert np.array_equal(
        adapt(images, box, method="lame", out=tmp_path / "run", resume=True).after, made.after
    )


def test_a_run_of_a_version_without_a_number_says_so(images, box, tmp_path) -> None:
    adapt(images, box, out=tmp_path / "run", **FAST)
    card = json.loads((tmp_path / "run" / "run.json").read_text())
    del card["settings"]["start"], card["settings"]["deviation"]
    (tmp_path / "run" / "run.json").write_text(json.dumps(card))
    with pytest.raises(
        RunError, match="begun by a version without start, deviation; finish it with that version"
    ):
        adapt(images, box, out=tmp_path / "run", resume=True, **FAST)
    with pytest.raises(
        RunError, match=r"holds another run .settings: .*epochs"
    ):  # something else differs, too
        adapt(
            images, box, out=tmp_path / "run", resume=True, **{**FAST, "epochs": 1 + FAST["epochs"]}
        )


def test_stopping_in_the_last_pass_keeps_the_adaptor(box, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("soda_tta.data.images.AT_ONCE_FLOATS", 3 * 64 * 20)  # pieces of 20 images
    many = np.random.default_rng(0).random((60, 3, 8, 8), dtype=np.float32)
    whole = adapt(many, box, out=tmp_path / "whole", **FAST)
    steps = (
        len(whole.history) + 2 + 1
    )  # asked after each step, and between the pieces of the two passes
    asked = iter(range(1000))
    run = adapt(many, box, out=tmp_path / "run", stop=lambda: next(asked) == steps - 1, **FAST)
    assert run.stopped == "interrupted" and run.after is None
    np.testing.assert_array_equal(run.adaptor.parameters, whole.adaptor.parameters)
    assert (tmp_path / "run" / "adaptor.safetensors").exists()
    resumed = adapt(many, box, out=tmp_path / "run", resume=True, **FAST)
    np.testing.assert_array_equal(resumed.probabilities, whole.probabilities)


def test_a_file_name_that_is_not_utf8_does_not_lose_a_paid_run(box, tmp_path) -> None:
    from PIL import Image

    folder = tmp_path / "images"
    folder.mkdir()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(folder / "a.png")
    (folder / "a.png").rename(folder / os.fsdecode(b"\xff.png"))
    run = adapt(folder, box, out=tmp_path / "run", **FAST)
    assert Run.load(tmp_path / "run").names == run.names


def faded(count: int = 120):
    """Images of little contrast, each of its own colour: a model that goes by colour gains from restoring it."""
    generator = np.random.default_rng(3)
    colours = generator.random((count, 3, 1, 1))
    noise = 0.2 * generator.standard_normal((count, 3, 8, 8))
    return np.clip(0.4 + 0.2 * (colours + noise), 0, 1).astype(np.float32)


@pytest.mark.parametrize("budget", [None, 30])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.45, 0.8, 0.95, 0.97, 0.985, 0.999])
def test_soda_e_resumes_bit_for_bit_and_pays_nothing_twice(
    model, tmp_path, share: float, budget, monkeypatch
) -> None:
    # this toy model only grows surer, which the verdict refuses; the way to the end is what is tested here
    monkeypatch.setattr("soda_tta.judging.verdict.at_confidence_of", lambda looks, others: looks)
    images, relay = faded(), Relay()
    relay.target = model
    whole = adapt(images, relay, method="soda-e", budget=budget, out=tmp_path / "whole")
    assert whole.verdict.adopt and 0 < whole.ledger.queries["evaluate"] < len(
        images
    )  # it goes all the way
    paid, model.asked = model.asked, 0
    relay.target = DyingModel(model, int(share * paid))
    with pytest.raises(BoxError, match="gone"):
        adapt(images, relay, method="soda-e", budget=budget, out=tmp_path / "run")
    relay.target = model
    resumed = adapt(
        images,
        relay,
        method="soda-e",
        budget=budget,
        out=tmp_path / "run",
        resume=bool(model.asked),
    )
    assert model.asked <= resumed.ledger.total and resumed.verdict.adopt
    if (
        budget is not None
    ):  # what was lost is missing at the end of the search: it ends some rounds earlier
        assert resumed.ledger.total <= budget * len(images)
        assert len(resumed.history) >= len(whole.history) - 1 - resumed.ledger.lost // (13 * 34)
        assert (
            len(resumed.history) == len(whole.history)
            or "cut short by lost requests" in resumed.reason
        )
        assert "cut short" not in whole.reason
        return
    assert same_files(tmp_path / "whole", tmp_path / "run")
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
    # the box splits a question into requests: those of the dead question that were answered are paid twice, no other
    assert paid <= model.asked <= paid + 31 * 90


def test_soda_e_stopped_between_rounds_goes_on_without_asking_again(model, tmp_path) -> None:
    images = faded()
    whole = adapt(images, model, method="soda-e", budget=30, out=tmp_path / "whole")
    paid, model.asked = model.asked, 0
    for rounds in (1, 3, 5):  # stopped again and again, each time a little further on
        steps = iter(range(1, 100))
        with pytest.raises(KeyboardInterrupt):
            adapt(
                images,
                model,
                method="soda-e",
                budget=30,
                out=tmp_path / "run",
                resume=rounds > 1,
                stop=lambda: next(steps) == rounds,  # noqa: B023 - called before the loop goes on
            )
    resumed = adapt(images, model, method="soda-e", budget=30, out=tmp_path / "run", resume=True)
    assert model.asked == paid and resumed.ledger.lost == 0
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
    assert same_files(tmp_path / "whole", tmp_path / "run")


@pytest.mark.parametrize("budget", [12.5, 16])
def test_soda_e_stopped_while_it_answers_goes_on_with_the_same_adaptor(
    model, tmp_path, budget, monkeypatch
) -> None:
    monkeypatch.setattr("soda_tta.judging.verdict.at_confidence_of", lambda looks, others: looks)
    monkeypatch.setattr("soda_tta.data.images.AT_ONCE_FLOATS", 3 * 64 * 20)  # pieces of 20 images
    images, pieces = faded(200), []
    whole = adapt(images, model, method="soda-e", budget=budget, out=tmp_path / "whole")
    paid, model.asked = model.asked, 0
    assert whole.verdict.adopt

    def answered(event) -> None:
        if isinstance(event, Answered) and event.purpose == "evaluate":
            pieces.append(event)

    with pytest.raises(KeyboardInterrupt):
        places = dict(out=tmp_path / "run", stop=lambda: len(pieces) == 6, listener=answered)
        adapt(images, model, method="soda-e", budget=budget, **places)
    resumed = adapt(
        images, model, method="soda-e", budget=budget, out=tmp_path / "run", resume=True
    )
    assert model.asked == paid and resumed.ledger.lost == 0
    np.testing.assert_array_equal(resumed.adaptor.parameters, whole.adaptor.parameters)
    np.testing.assert_array_equal(resumed.probabilities, whole.probabilities)


STREAMED = dict(arrival=20, epochs=2, width=2, q=2, queue=40, batch=16, lr=0.05)
BY_PROCEDURE = {
    "soda-o": STREAMED,
    "da-pgd": dict(epochs=1),
    "da-zoo-input": dict(epochs=1, width=2),
    "soda-e": {},
}


@pytest.mark.parametrize("method", BY_PROCEDURE)
@pytest.mark.parametrize("budget", [8, 14, None])
@pytest.mark.parametrize("shares", [(0.9,), (0.2, 0.5, 0.9, 0.9, 0.9, 0.9)])
def test_a_budget_and_a_model_that_fails_still_come_to_an_end(
    model, tmp_path, method, budget, shares
) -> None:
    images, relay, settings = faded(), Relay(), BY_PROCEDURE[method]
    relay.target = model
    whole = adapt(images, relay, method=method, budget=budget, **settings)
    paid, model.asked, begun = model.asked, 0, False
    for share in shares:  # it fails, again and again, ever further on
        relay.target = DyingModel(model, max(int(share * paid), model.asked))
        with suppress(BoxError):
            adapt(
                images,
                relay,
                method=method,
                budget=budget,
                out=tmp_path / "run",
                resume=begun,
                **settings,
            )
        begun = begun or model.asked > 0
    relay.target = model
    run = adapt(
        images, relay, method=method, budget=budget, out=tmp_path / "run", resume=begun, **settings
    )
    assert (
        run.probabilities.shape == whole.probabilities.shape
        and np.isfinite(run.probabilities).all()
    )
    if "eaten up" in run.reason or "cut short" in run.reason:
        assert run.stopped == "budget" and run.ledger.by_purpose()["lost"]
    elif method == "soda-e":
        assert len(run.history) == len(whole.history)  # else it would not say why
    assert model.asked <= run.ledger.total
    if budget is None:
        np.testing.assert_array_equal(run.probabilities, whole.probabilities)
    else:
        assert run.ledger.total <= budget * len(images)


ECONOMY_SCRIPT = """
import sys, time, warnings, numpy as np
from soda_tta import adapt
warnings.simplefilter("ignore")
weights = np.random.default_rng(7).normal(size=(3, 4))
def model(images):
    with open(sys.argv[2], "a") as file:
        file.write(f"{len(images)}\\n")
    time.sleep(0.02)
    e = np.exp(8 * (images.mean(axis=(2, 3)) - 0.5) @ weights)
    return e / e.sum(axis=1, keepdims=True)
adapt(np.load(sys.argv[3]), model, method="soda-e", out=sys.argv[1], resume="resume" in sys.argv)
"""


def test_sigkill_in_the_middle_of_soda_e_then_resume_ends_bit_for_bit_the_same(tmp_path) -> None:
    (tmp_path / "script.py").write_text(ECONOMY_SCRIPT)
    np.save(tmp_path / "images.npy", faded())

    def start(folder: str, asked: str, *more: str) -> subprocess.Popen:
        places = [tmp_path / name for name in ("script.py", folder, asked, "images.npy")]
        return subprocess.Popen([sys.executable, *places, *more])

    assert start("whole", "asked-whole").wait() == 0
    kills, more = 0, ()
    for further in (1, 8, 25, 15):  # requests it may make before it is killed
        process, known = start("run", "asked", *more), lines(tmp_path / "asked")
        while process.poll() is None and lines(tmp_path / "asked") < known + further:
            time.sleep(0.002)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        more = ("resume",) if (tmp_path / "run" / "run.json").exists() else ()
    assert start("run", "asked", *more).wait() == 0 and kills >= 3
    assert same_files(tmp_path / "whole", tmp_path / "run")
    paid, needed = total(tmp_path / "asked"), total(tmp_path / "asked-whole")
    owned = sum(json.loads((tmp_path / "run" / "run.json").read_text())["queries"].values())
    assert (
        needed < paid <= owned <= needed + kills * 30 * 90
    )  # a question under way: 30 moves on 90 images


FULL_DISK = """
import resource, sys, warnings, numpy as np
from soda_tta import adapt
from soda_tta.errors import RunError
warnings.simplefilter("ignore")
images = np.random.default_rng(0).random((64, 3, 8, 8), dtype=np.float32)
uniform = lambda x: np.full((len(x), 4), 0.25)
uniform.__qualname__ = "uniform"
if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
try:
    settings = dict(epochs=20, batch=16, width=4, lr=0.05)
    adapt(images, uniform, method="soda", out=sys.argv[1], resume=sys.argv[2] == "resume", **settings)
except RunError as error:
    print(error)
    sys.exit(3)
"""


def test_a_full_disk_is_a_sentence_and_the_run_continues_when_there_is_room(tmp_path) -> None:
    def start(how: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-c", FULL_DISK, tmp_path / "run", how]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    full = start("full")  # the kernel refuses to let files grow: a real error from a real write
    assert full.returncode == 3 and "could not be written" in full.stdout
    assert not list((tmp_path / "run").rglob("*.tmp"))
    resumed = start("resume")
    assert resumed.returncode == 0, resumed.stderr
    assert Run.load(tmp_path / "run").stopped == "finished"


def test_ledger_refuses_rather_than_overspends_when_the_plan_is_wrong(
    images, model, monkeypatch
) -> None:
    from soda_tta.engine import plan

    monkeypatch.setattr(plan, "_whole_steps", lambda *a: 10**9)
    monkeypatch.setattr("soda_tta.engine.loop.Training._affordable", lambda *a: True)
    with pytest.raises(BudgetError):
        adapt(images, model, budget=5, **FAST)
    assert model.asked <= 5 * len(images)


assert os.name == "posix" and resource.RLIMIT_FSIZE  # these tests speak to a POSIX kernel


def test_a_file_torn_by_a_kill_does_not_stay(images, model, tmp_path) -> None:
    relay = Relay()
    relay.target = DyingModel(model, 60)
    with pytest.raises(BoxError, match="gone"):
        adapt(images, relay, out=tmp_path / "run", **FAST)
    (tmp_path / "run" / ".history.jsonl.123.tmp").write_text("{")
    relay.target = model
    adapt(images, relay, out=tmp_path / "run", resume=True, **FAST)
    assert not list((tmp_path / "run").glob(".*"))


@pytest.mark.parametrize("budget", [None, 20])
@pytest.mark.parametrize("after", [60, 200, 500])
def test_a_stream_that_dies_halfway_pays_nothing_twice(
    images, model, tmp_path, after: int, budget
) -> None:
    settings = {"arrival": 16, "epochs": 2, "width": 4, "tau": 0.5, "queue": 12}
    relay = Relay()
    relay.target = model
    whole = adapt(images, relay, method="soda-o", budget=budget, out=tmp_path / "whole", **settings)
    relay.target = DyingModel(model, after)
    with pytest.raises(BoxError, match="gone"):
        adapt(images, relay, method="soda-o", budget=budget, out=tmp_path / "run", **settings)
    relay.target = model
    resumed = adapt(
        images, relay, method="soda-o", budget=budget, out=tmp_path / "run", resume=True, **settings
    )
    if budget is None:
        np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
        assert whole.ledger.queries == resumed.ledger.queries
    else:  # the dead request is lost to the budget, no other
        assert resumed.ledger.total <= budget * len(images)
        assert (
            sum(resumed.ledger.queries.values())
            >= sum(whole.ledger.queries.values()) - 3 * resumed.ledger.lost
        )
    assert resumed.ledger.lost <= 6 * 28  # one question: a batch and the queue, at every candidate
