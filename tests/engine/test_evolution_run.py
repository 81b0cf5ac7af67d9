"""Evolution in the training loop: any adaptor, counted, resumed, refused where it cannot work."""

import json
import warnings

import numpy as np
import pytest

from soda_tta import adapt, all_methods
from soda_tta.box import Quantised
from soda_tta.cli import main
from soda_tta.engine.events import Epoch, Notice
from soda_tta.engine.stream import Stream
from soda_tta.errors import BoxError, MethodError
from soda_tta.methods.online import soda_o

SODA = all_methods()["soda"]
COMMON = dict(method="soda", search="evolution", population=6, epochs=4, batch=16)
NETWORK = dict(diagonal=True, width=4, **COMMON)
CORRELATED = dict(width=4, **COMMON)  # 223 parameters
BANK = dict(adaptor="bank", **COMMON)
EACH = pytest.mark.parametrize(
    "settings", [NETWORK, CORRELATED, BANK], ids=["network", "correlated", "bank"]
)


@pytest.fixture(autouse=True)
def without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@EACH
@pytest.mark.parametrize("budget", [None, 1, 2.5, 9.5, 20])
def test_every_query_is_counted_and_the_budget_is_kept(images, model, settings, budget) -> None:
    run = adapt(images, model, budget=budget, **settings)
    assert run.ledger.total == model.asked <= (budget or 30) * len(images)
    assert run.ledger.queries == run.card.plan["queries"]
    if budget is None:
        assert run.ledger.queries == {"select": 50, "probe": 4 * 7 * 50, "evaluate": 50}


@EACH
def test_a_run_follows_its_seed(images, box, settings) -> None:
    first, second, third = (adapt(images, box, seed=seed, **settings) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert first.history == second.history != third.history


@EACH
def test_evolution_improves_the_loss_far_more_than_chance(images, box, settings) -> None:
    dull = (0.4 + 0.2 * images).astype(np.float32)
    run = adapt(dull, box, **{**settings, "epochs": 30, "batch": 50, "population": 12})
    first, last = run.history[0], run.history[-1]
    assert last.loss < 1.2 * first.loss < 0  # minus the mutual information
    assert last.mutual_information > first.mutual_information


def test_the_bank_is_searched_in_its_own_units(images, box) -> None:
    adaptor = SODA.but(adaptor="bank").adaptor.build(0)
    method = SODA.but(search="evolution", adaptor="bank", population=400)
    points = method.start(adaptor, seed=0).ask()
    np.testing.assert_allclose(points[1:].std(axis=0) / adaptor.units, 0.1, rtol=0.2)
    assert adaptor.units.min() < 0.1 < 1 < adaptor.units.max()
    network = SODA.adaptor.build(0)
    np.testing.assert_array_equal(network.units, np.ones(3523))


@EACH
@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.9, 0.99])
def test_a_run_whose_model_fails_resumes_bit_for_bit(
    images, model, failing, tmp_path, settings, share: float
) -> None:
    whole = adapt(images, failing, out=tmp_path / "whole", **settings)
    billed = model.asked
    model.asked = 0
    failing.most = int(share * billed)
    with pytest.raises(BoxError, match="gone"):
        adapt(images, failing, out=tmp_path / "run", **settings)
    failing.most = np.inf
    resumed = adapt(images, failing, out=tmp_path / "run", resume=True, **settings)
    assert model.asked == billed  # nothing is billed twice
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
    for name in ("history.jsonl", "adaptor.safetensors", "answers.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


@EACH
@pytest.mark.parametrize("steps", [1, 4, 6])  # within the first epoch, at its end, in the next
def test_a_stopped_run_resumes_bit_for_bit(images, box, tmp_path, settings, steps: int) -> None:
    whole = adapt(images, box, **settings)
    done = iter(range(1, 1000))
    adapt(images, box, out=tmp_path / "run", stop=lambda: next(done) == steps, **settings)
    resumed = adapt(images, box, out=tmp_path / "run", resume=True, **settings)
    np.testing.assert_array_equal(whole.adaptor.parameters, resumed.adaptor.parameters)
    assert whole.history == resumed.history


def test_the_history_holds_every_deviation_and_an_epoch_the_first(images, box) -> None:
    events = []
    run = adapt(images, box, listener=events.append, **BANK)
    lengths = [step.lr for step in run.history]
    assert lengths[0] == 0.1 and len(set(lengths)) == len(lengths)
    assert {event.lr for event in events if isinstance(event, Epoch)} == {0.1}


def test_no_notice_mentions_a_learning_rate_or_mu(images, box) -> None:
    events = []
    adapt(images, Quantised(box), listener=events.append, **NETWORK)
    assert not [event for event in events if isinstance(event, Notice)]


@pytest.mark.parametrize("wrong", [{"lr": 0.1}, {"lr": "auto"}, {"step": "adam"}])
def test_evolution_refuses_lr_and_step(wrong) -> None:
    with pytest.raises(MethodError, match="neither lr nor step"):
        SODA.but(search="evolution", **wrong)
    with pytest.raises(MethodError, match="neither lr nor step"):
        SODA.but(search="evolution").but(**wrong)
    assert SODA.but(search="evolution").but(search="multi-point", **wrong).settings["mu"] == 1e-3


def test_evolution_does_not_have_the_settings_of_other_searches() -> None:
    for name in ("momentum", "weight_decay", "mu", "q"):
        with pytest.raises(MethodError, match="has no setting"):
            SODA.but(search="evolution", **{name: 1})
    with pytest.raises(MethodError, match="neither lr nor step"):
        all_methods()["soda-auto"].but(search="evolution")
    with pytest.raises(MethodError, match="cannot use another search"):
        all_methods()["soda-fo"].but(search="evolution")


def test_its_settings_give_the_same_method_again_also_as_text() -> None:
    texts = dict(diagonal="true", population="20", sigma="0.05", adaptor="bank")
    method = SODA.but(search="evolution", **texts)
    search = method.search
    assert (search.diagonal, search.population, search.sigma) == (True, 20, 0.05)
    assert SODA.but(**method.settings) == method
    assert SODA.but(**{name: str(value) for name, value in method.settings.items()}) == method
    assert search.candidates == 21
    assert not {"lr", "step", "momentum"} & method.settings.keys()


def test_too_many_correlations_are_refused_before_the_first_query(images, model, tmp_path) -> None:
    with pytest.raises(MethodError, match="diagonal=True"):
        adapt(images, model, method="soda", search="evolution", out=tmp_path / "run")
    assert model.asked == 0 and not (tmp_path / "run").exists()


def test_a_stream_refuses_evolution_before_the_first_query(images, model) -> None:
    for start in (
        lambda: Stream(model, search="evolution", adaptor="bank"),
        lambda: soda_o.but(search="evolution", adaptor="bank"),
        lambda: adapt(images, model, method="soda-o", search="evolution", diagonal=True),
    ):
        with pytest.raises(MethodError, match="per-image"):
            start()
    assert model.asked == 0


def test_the_command_line_offers_evolution(images, tmp_path, capsys) -> None:
    np.save(tmp_path / "images.npy", images)
    (tmp_path / "model.py").write_text(
        "import numpy as np\n"
        "def answer(images):\n"
        "    exponents = np.exp(8 * images.mean(axis=(2, 3)))\n"
        "    return exponents / exponents.sum(axis=1, keepdims=True)\n"
    )
    words = ["adapt", "--model", f"{tmp_path}/model.py:answer"]
    words += ["--images", f"{tmp_path}/images.npy", "--json"]
    words += ["--method", "soda", "--set", "search=evolution", "--set", "epochs=2"]
    small = ["--set", "diagonal=true", "--set", "width=4"]
    assert main([*words, *small, "--out", str(tmp_path / "run")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["settings"]["search"] == "evolution" and facts["queries"]["probe"] == 2 * 13 * 50
    assert main([*words, "--dry-run"]) != 0
    assert "--set diagonal=true" in capsys.readouterr().err
