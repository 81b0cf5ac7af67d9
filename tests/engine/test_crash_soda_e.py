"""soda-e, and other methods that replay a transcript: failing models, lost responses, stops."""

from contextlib import suppress

import numpy as np
import pytest

from soda_tta import adapt
from soda_tta.engine.events import Answered, Step
from soda_tta.errors import BoxError

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def lenient_verdict(monkeypatch) -> None:
    """Lets the verdict adopt although the small model only becomes more confident.

    The verdict would refuse that; these tests need a run that goes to its end.
    """
    monkeypatch.setattr("soda_tta.judging.verdict.at_confidence_of", lambda looks, others: looks)


@pytest.mark.usefixtures("lenient_verdict")
@pytest.mark.parametrize("budget", [None, 30])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.45, 0.8, 0.95, 0.97, 0.985, 0.999])
def test_soda_e_resumes_bit_for_bit_and_bills_nothing_twice(
    model, failing, faded_images, assert_same_files, tmp_path, share: float, budget
) -> None:
    images = faded_images()
    whole = adapt(images, failing, method="soda-e", budget=budget, out=tmp_path / "whole")
    assert whole.verdict.adopt
    assert 0 < whole.ledger.queries["evaluate"] < len(images)
    billed = model.asked
    model.asked = 0
    failing.most = int(share * billed)
    with pytest.raises(BoxError, match="gone"):
        adapt(images, failing, method="soda-e", budget=budget, out=tmp_path / "run")
    failing.most = np.inf
    started = bool(model.asked)
    resumed = adapt(
        images, failing, method="soda-e", budget=budget, out=tmp_path / "run", resume=started
    )
    assert resumed.verdict.adopt
    assert_same_files(tmp_path / "whole", tmp_path / "run")
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
    assert model.asked == billed  # every request that was answered is kept
    if budget is not None:
        assert resumed.ledger.lost <= 64  # one request
        assert resumed.ledger.total <= budget * len(images)


def test_soda_e_stopped_between_rounds_continues_without_sending_a_query_twice(
    model, faded_images, assert_same_files, tmp_path
) -> None:
    images = faded_images()
    whole = adapt(images, model, method="soda-e", budget=30, out=tmp_path / "whole")
    billed = model.asked
    model.asked = 0
    out = tmp_path / "run"
    for rounds in (1, 3, 5):  # stopped several times, each time a little later
        events = []

        def enough(events=events, rounds=rounds) -> bool:
            return sum(isinstance(event, Step) for event in events) == rounds

        stopped = adapt(
            images,
            model,
            method="soda-e",
            budget=30,
            out=out,
            resume=rounds > 1,
            listener=events.append,
            stop=enough,
        )
        assert stopped.stopped == "interrupted"
        assert stopped.after is None
        assert len(stopped.history) == rounds
    resumed = adapt(images, model, method="soda-e", budget=30, out=out, resume=True)
    assert model.asked == billed
    assert resumed.ledger.lost == 0
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
    assert_same_files(tmp_path / "whole", out)


@pytest.mark.usefixtures("lenient_verdict")
@pytest.mark.parametrize("budget", [12.5, 16])
def test_soda_e_stopped_in_its_final_pass_continues_with_the_same_adaptor(
    model, faded_images, tmp_path, budget, monkeypatch
) -> None:
    monkeypatch.setattr("soda_tta.data.images.AT_ONCE_FLOATS", 3 * 64 * 20)  # 20 images per piece
    images = faded_images(200)
    whole = adapt(images, model, method="soda-e", budget=budget, out=tmp_path / "whole")
    billed = model.asked
    model.asked = 0
    assert whole.verdict.adopt
    pieces = []

    def listener(event) -> None:
        if isinstance(event, Answered) and event.purpose == "evaluate":
            pieces.append(event)

    out = tmp_path / "run"
    stopped = adapt(
        images,
        model,
        method="soda-e",
        budget=budget,
        out=out,
        stop=lambda: len(pieces) == 6,
        listener=listener,
    )
    assert stopped.stopped == "interrupted"
    assert stopped.after is None
    np.testing.assert_array_equal(stopped.adaptor.parameters, whole.adaptor.parameters)
    resumed = adapt(images, model, method="soda-e", budget=budget, out=out, resume=True)
    assert model.asked == billed
    assert resumed.ledger.lost == 0
    np.testing.assert_array_equal(resumed.adaptor.parameters, whole.adaptor.parameters)
    np.testing.assert_array_equal(resumed.probabilities, whole.probabilities)


STREAMED = dict(arrival=20, epochs=2, width=2, q=2, queue=40, batch=16, lr=0.05)
WITH_TRANSCRIPT = {
    "soda-o": STREAMED,
    "da-pgd": dict(epochs=1),
    "da-zoo-input": dict(epochs=1, width=2),
    "soda-e": {},
}


@pytest.mark.parametrize("method", WITH_TRANSCRIPT)
@pytest.mark.parametrize("budget", [8, 14, None])
@pytest.mark.parametrize("shares", [(0.9,), (0.2, 0.5, 0.9, 0.9, 0.9, 0.9)])
def test_a_run_with_a_budget_and_a_failing_model_comes_to_an_end(
    model, failing, faded_images, tmp_path, method, budget, shares
) -> None:
    images = faded_images()
    call = dict(method=method, budget=budget, **WITH_TRANSCRIPT[method])
    whole = adapt(images, failing, **call)
    billed = model.asked
    model.asked = 0
    started = False
    for share in shares:  # the model fails several times, each time a little later
        failing.most = max(int(share * billed), model.asked)
        with suppress(BoxError):
            adapt(images, failing, out=tmp_path / "run", resume=started, **call)
        started = started or model.asked > 0
    failing.most = np.inf
    run = adapt(images, failing, out=tmp_path / "run", resume=started, **call)
    assert run.probabilities.shape == whole.probabilities.shape
    assert np.isfinite(run.probabilities).all()
    if "used up the budget" in run.reason or "cut short" in run.reason:
        assert run.stopped == "budget"
        assert run.ledger.by_purpose()["lost"]
    elif method == "soda-e":
        assert len(run.history) == len(whole.history)  # otherwise the reason would say why
    assert model.asked <= run.ledger.total
    if budget is None:
        np.testing.assert_array_equal(run.probabilities, whole.probabilities)
    else:
        assert run.ledger.total <= budget * len(images)
