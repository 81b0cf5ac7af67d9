"""Evolution in the ordinary training loop: any adaptor, counted, resumed, refused where it cannot be."""

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
NETWORK = dict(
    method="soda", search="evolution", diagonal=True, population=6, epochs=4, batch=16, width=4
)
CORRELATED = dict(
    method="soda", search="evolution", population=6, epochs=4, batch=16, width=4
)  # 223 parameters
BANK = dict(method="soda", search="evolution", adaptor="bank", population=6, epochs=4, batch=16)
EACH = pytest.mark.parametrize(
    "settings", [NETWORK, CORRELATED, BANK], ids=["network", "correlated", "bank"]
)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@EACH
@pytest.mark.parametrize("budget", [None, 1, 2.5, 9.5, 20])
def test_every_query_is_counted_and_the_budget_kept(images, model, settings, budget) -> None:
    run = adapt(images, model, budget=budget, **settings)
    assert run.ledger.total == model.asked <= (budget or 30) * len(images)
    assert run.ledger.queries == run.card["plan"]["queries"]
    if budget is None:
        assert run.ledger.queries == {"select": 50, "probe": 4 * 7 * 50, "evaluate": 50}


@EACH
def test_it_follows_its_seed(images, box, settings) -> None:
    first, second, third = (adapt(images, box, seed=seed, **settings) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert first.history == second.history != third.history


@EACH
def test_it_improves_the_loss_far_more_than_chance(images, box, settings) -> None:
    dull = (0.4 + 0.2 * images).astype(np.float32)
    run = adapt(dull, box, **{**settings, "epochs": 30, "batch": 50, "population": 12})
    first, last = run.history[0], run.history[-1]
    assert last.loss < 1.2 * first.loss < 0  # minus the mutual information
    assert last.mutual_information > first.mutual_information


def test_the_bank_is_searched_in_its_own_units(images, box) -> None:
    adaptor = SODA.but(adaptor="bank").adaptor.build(0)
    points = (
        SODA.but(search="evolution", adaptor="bank", population=400).start(adaptor, seed=0).ask()
    )
    np.testing.assert_allclose(points[1:].std(axis=0) / adaptor.units, 0.1, rtol=0.2)
    assert adaptor.units.min() < 0.1 < 1 < adaptor.units.max()
    network = SODA.adaptor.build(0)
    np.testing.assert_array_equal(network.units, np.ones(3523))


@EACH
@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.9, 0.99])
def test_a_box_that_dies_halfway_is_picked_up_bit_for_bit(
    images, model, tmp_path, settings, share: float
) -> None:
    limit = [10**9]

    def relay(batch):
        if model.asked + len(batch) > limit[0]:
            raise BoxError("the model is gone")
        return model(batch)

    whole = adapt(images, relay, out=tmp_path / "whole", **settings)
    paid, model.asked = model.asked, 0
    limit[0] = int(share * paid)
    with pytest.raises(BoxError, match="gone"):
        adapt(images, relay, out=tmp_path / "run", **settings)
    limit[0] = 10**9
    resumed = adapt(images, relay, out=tmp_path / "run", resume=True, **settings)
    assert model.asked == paid  # nothing is asked twice
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)
    for name in ("history.jsonl", "adaptor.safetensors", "answers.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


@EACH
@pytest.mark.parametrize("steps", [1, 4, 6])  # within the first epoch, at its end, in the next
def test_stopped_and_picked_up_it_ends_the_same(
    images, box, tmp_path, settings, steps: int
) -> None:
    whole = adapt(images, box, **settings)
    done = iter(range(1, 1000))
    adapt(images, box, out=tmp_path / "run", stop=lambda: next(done) == steps, **settings)
    resumed = adapt(images, box, out=tmp_path / "run", resume=True, **settings)
    np.testing.assert_array_equal(whole.adaptor.parameters, resumed.adaptor.parameters)
    assert whole.history == resumed.history


def test_the_history_tells_the_deviation_and_an_epoch_the_first(images, box) -> None:
    events = []
    run = adapt(images, box, listener=events.append, **BANK)
    lengths = [step.lr for step in run.history]
    assert lengths[0] == 0.1 and len(set(lengths)) == len(lengths)
    assert {event.lr for event in events if isinstance(event, Epoch)} == {0.1}


def test_no_notice_speaks_of_a_learning_rate_or_of_mu(images, box) -> None:
    events = []
    adapt(images, Quantised(box), listener=events.append, **NETWORK)
    assert not [event for event in events if isinstance(event, Notice)]


@pytest.mark.parametrize("wrong", [{"lr": 0.1}, {"lr": "auto"}, {"step": "adam"}])
def test_a_step_of_its_own_it_does_not_take(wrong) -> None:
    with pytest.raises(MethodError, match="neither lr nor step"):
        SODA.but(search="evolution", **wrong)
    with pytest.raises(MethodError, match="neither lr nor step"):
        SODA.but(search="evolution").but(**wrong)
    assert SODA.but(search="evolution").but(search="multi-point", **wrong).settings["mu"] == 1e-3


def test_what_belongs_to_other_searches_it_does_not_have() -> None:
    for number in ("momentum", "weight_decay", "mu", "q"):
        with pytest.raises(MethodError, match="no number"):
            SODA.but(search="evolution", **{number: 1})
    with pytest.raises(MethodError, match="neither lr nor step"):
        all_methods()["soda-auto"].but(search="evolution")
    with pytest.raises(MethodError, match="takes no other search"):
        all_methods()["soda-fo"].but(search="evolution")


def test_its_numbers_give_the_recipe_again_also_as_text() -> None:
    recipe = SODA.but(
        search="evolution", diagonal="true", population="20", sigma="0.05", adaptor="bank"
    )
    assert recipe.search.diagonal and recipe.search.population == 20 and recipe.search.sigma == 0.05
    assert SODA.but(**recipe.settings) == recipe
    assert SODA.but(**{name: str(value) for name, value in recipe.settings.items()}) == recipe
    assert recipe.queries_an_epoch == 21 and not {"lr", "step", "momentum"} & recipe.settings.keys()


def test_more_correlations_than_it_can_learn_are_refused_before_the_first_query(
    images, model, tmp_path
) -> None:
    with pytest.raises(MethodError, match="diagonal=true"):
        adapt(images, model, method="soda", search="evolution", out=tmp_path / "run")
    assert model.asked == 0 and not (tmp_path / "run").exists()


def test_a_stream_refuses_it_before_the_first_query(images, model) -> None:
    for start in (
        lambda: Stream(model, search="evolution", adaptor="bank"),
        lambda: soda_o.but(search="evolution", adaptor="bank"),
        lambda: adapt(images, model, method="soda-o", search="evolution", diagonal=True),
    ):
        with pytest.raises(MethodError, match="per-image"):
            start()
    assert model.asked == 0


def test_it_is_reached_from_the_command_line(images, tmp_path, capsys) -> None:
    np.save(tmp_path / "images.npy", images)
    (tmp_path / "model.py").write_text(
        "import numpy as np\n"
        "def answer(images):\n"
        "    exponents = np.exp(8 * images.mean(axis=(2, 3)))\n"
        "    return exponents / exponents.sum(axis=1, keepdims=True)\n"
    )
    words = [
        "adapt",
        "--model",
        f"{tmp_path}/model.py:answer",
        "--images",
        f"{tmp_path}/images.npy",
        "--json",
    ]
    words += ["--method", "soda", "--set", "search=evolution", "--set", "epochs=2"]
    assert (
        main([*words, "--set", "diagonal=true", "--set", "width=4", "--out", str(tmp_path / "run")])
        == 0
    )
    facts = json.loads(capsys.readouterr().out)
    assert facts["settings"]["search"] == "evolution" and facts["queries"]["probe"] == 2 * 13 * 50
    assert main([*words, "--dry-run"]) != 0
    assert "diagonal=true" in capsys.readouterr().err
