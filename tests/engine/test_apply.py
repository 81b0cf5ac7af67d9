"""`apply`: from every kind of source, to CSV and JSON, stopped, resumed, overwritten."""

import csv
import json
import warnings

import numpy as np
import pytest

from soda_tta import adapt, apply, load_box
from soda_tta.adaptors import Identity, PaperNetwork
from soda_tta.engine.events import Answered, Notice, Planned
from soda_tta.engine.saved import AVERAGED
from soda_tta.errors import BoxError, RunError, StorageError
from soda_tta.testing.data import make_black_box

FAST = dict(method="soda", epochs=2, batch=16, width=4, lr=0.05)


@pytest.fixture
def run(images, model, tmp_path):
    """A finished run, kept in the folder "run"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        finished = adapt(images, model, out=tmp_path / "run", **FAST)
    model.asked = 0
    return finished


@pytest.fixture
def adaptor():
    return PaperNetwork(width=4).build(seed=1)


@pytest.fixture
def three_pieces(monkeypatch) -> None:
    """A pass over 50 images takes three pieces: 20, 20 and 10 images."""
    monkeypatch.setattr("soda_tta.data.images.AT_ONCE_FLOATS", 3 * 64 * 20)


def read_csv(path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# -- sources -------------------------------------------------------------------------------------


def test_an_adaptor_answers_every_image_with_one_query(images, model, adaptor) -> None:
    answers = apply(adaptor, images, model)
    assert model.asked == answers.ledger.total == 50
    assert answers.ledger.queries == {"serve": 50}
    assert not answers.interrupted
    np.testing.assert_array_equal(answers.probabilities, load_box(model)(adaptor(images)))
    np.testing.assert_array_equal(answers.predictions, answers.probabilities.argmax(axis=1))
    np.testing.assert_array_equal(answers.confidences, answers.probabilities.max(axis=1))


def test_a_run_its_folder_and_its_adaptor_file_give_the_answers_of_the_run(
    images, model, run, tmp_path
) -> None:
    folder = tmp_path / "run"
    for source in (run, run.adaptor, folder, str(folder), folder / "adaptor.safetensors"):
        answers = apply(source, images, model)
        np.testing.assert_array_equal(answers.probabilities, run.after)
        assert answers.names == run.names
    assert model.asked == 5 * 50


def test_a_run_that_averages_its_answers_gives_a_notice(images, model, tmp_path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        averaged = adapt(images, model, average=True, out=tmp_path / "run", **FAST)
    for source in (averaged, tmp_path / "run"):
        with pytest.warns(UserWarning, match="averaged each answer") as caught:
            answers = apply(source, images, model)
        assert [str(each.message) for each in caught] == [AVERAGED]
        mean = (averaged.before + answers.probabilities) / 2
        np.testing.assert_allclose(mean, averaged.after, atol=1e-6)


def test_a_run_without_an_adaptor_for_its_answers_is_refused(images, model, tmp_path) -> None:
    sharpened = adapt(images, model, method="lame", out=tmp_path / "lame")
    assert not np.array_equal(sharpened.after, sharpened.before)
    for source in (sharpened, tmp_path / "lame"):
        with pytest.raises(RunError, match="a run of lame, which left no adaptor"):
            apply(source, images, model)
    unchanged = adapt(images, model, method="deployed")
    with pytest.warns(UserWarning, match="leaves images as they are: Nothing was learned"):
        answers = apply(unchanged, images, model)
    np.testing.assert_array_equal(answers.probabilities, unchanged.before)


def test_a_run_that_was_killed_is_refused_and_a_stopped_one_has_its_adaptor(
    images, model, failing, tmp_path
) -> None:
    failing.most = 120
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(BoxError):
            adapt(images, failing, out=tmp_path / "killed", **FAST)
        stopped = adapt(images, model, out=tmp_path / "stopped", stop=lambda: True, **FAST)
    with pytest.raises(RunError, match="has not ended and has no adaptor yet"):
        apply(tmp_path / "killed", images, model)
    answers = apply(tmp_path / "stopped", images, model)
    expected = load_box(model)(stopped.adaptor(images))
    np.testing.assert_array_equal(answers.probabilities, expected)


# -- files ---------------------------------------------------------------------------------------


def test_out_is_written_as_csv(images, model, adaptor, tmp_path) -> None:
    out = tmp_path / "new" / "answers.csv"
    answers = apply(adaptor, images, model, out=out)
    rows = read_csv(out)
    assert out.read_text() == answers.csv()
    assert [row["image"] for row in rows] == answers.names
    assert [int(row["class"]) for row in rows] == answers.predictions.tolist()
    confidences = [float(row["confidence"]) for row in rows]
    np.testing.assert_allclose(confidences, answers.confidences, atol=1e-6)
    assert [path.name for path in out.parent.iterdir()] == ["answers.csv"]


def test_out_is_written_as_json_by_its_suffix(images, model, adaptor, tmp_path) -> None:
    out = tmp_path / "answers.JSON"
    answers = apply(adaptor, images, model, out=out)
    facts = json.loads(out.read_text())
    assert facts == {"queries": 50, "answers": answers.rows()}
    assert [row["class"] for row in facts["answers"]] == answers.predictions.tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["answers.JSON"]


def test_an_existing_file_is_overwritten_only_by_force(images, model, adaptor, tmp_path) -> None:
    out = tmp_path / "answers.csv"
    out.write_text("mine")
    with pytest.raises(StorageError, match="exists; choose another name, or use force=True"):
        apply(adaptor, images, model, out=out)
    with pytest.raises(StorageError, match="is a folder"):
        apply(adaptor, images, model, out=tmp_path, force=True)
    assert model.asked == 0
    assert out.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [out]
    answers = apply(adaptor, images, model, out=out, force=True)
    assert out.read_text() == answers.csv()


# -- stop and resume -----------------------------------------------------------------------------


@pytest.mark.usefixtures("three_pieces")
@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_stopped_answers_resume_without_billing_a_query_twice(
    images, model, adaptor, tmp_path, suffix: str
) -> None:
    whole = apply(adaptor, images, model, out=tmp_path / f"whole.{suffix}")
    model.asked = 0
    out = tmp_path / f"answers.{suffix}"
    stopped = apply(adaptor, images, model, out=out, stop=lambda: True)
    assert stopped.interrupted
    assert model.asked == stopped.ledger.total == 20
    np.testing.assert_array_equal(stopped.probabilities[:20], whole.probabilities[:20])
    assert np.isnan(stopped.probabilities[20:]).all()
    assert not out.exists()
    resumed = apply(adaptor, images, model, out=out, resume=True)
    assert not resumed.interrupted
    assert model.asked == 50
    assert resumed.ledger.queries == {"serve": 50}
    assert resumed.ledger.lost == 0
    np.testing.assert_array_equal(resumed.probabilities, whole.probabilities)
    assert out.read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes()
    assert not list(tmp_path.glob("*.partial*"))


@pytest.mark.usefixtures("three_pieces")
def test_images_that_a_stop_left_unanswered_have_neither_class_nor_confidence(
    images, model, adaptor
) -> None:
    answers = apply(adaptor, images, model, stop=lambda: True)
    rows = json.loads(answers.json(), parse_constant=pytest.fail)["answers"]
    assert rows[19]["class"] == answers.predictions[19]
    assert rows[20] == {"image": answers.names[20], "class": None, "confidence": None}
    assert answers.csv().splitlines()[1 + 20] == f"{answers.names[20]},,"


@pytest.mark.usefixtures("three_pieces")
def test_a_failed_request_is_counted_as_lost(images, model, failing, adaptor, tmp_path) -> None:
    failing.most = 30
    with pytest.raises(BoxError, match="gone"):
        apply(adaptor, images, failing, out=tmp_path / "answers.csv")
    failing.most = np.inf
    resumed = apply(adaptor, images, failing, out=tmp_path / "answers.csv", resume=True)
    assert model.asked == 50
    assert resumed.ledger.by_purpose() == {"serve": 50, "lost": 20}


@pytest.mark.usefixtures("three_pieces")
def test_billed_answers_are_neither_thrown_away_nor_mixed_with_others(
    images, model, adaptor, tmp_path
) -> None:
    out = tmp_path / "answers.csv"
    with pytest.raises(StorageError, match="there are no answers to these images"):
        apply(adaptor, images, model, out=out, resume=True)
    apply(adaptor, images, model, out=out, stop=lambda: True)
    for force in (False, True):
        with pytest.raises(StorageError, match="holds answers that were billed"):
            apply(adaptor, images, model, out=out, force=force)
    others = [
        (adaptor, images[::-1], model),
        (PaperNetwork(width=4).build(seed=2), images, model),
        (adaptor, images, lambda batch: model(batch)),
    ]
    for other in others:
        with pytest.raises(StorageError, match="there are no answers to these images"):
            apply(*other, out=out, resume=True)
    assert model.asked == 20
    assert apply(adaptor, images, model, out=out, resume=True).ledger.total == 50


def test_two_processes_never_bill_the_same_answers(images, model, adaptor, tmp_path) -> None:
    out = tmp_path / "answers.csv"

    def model_and_second_call(batch):
        with pytest.raises(StorageError, match="another process is writing these answers"):
            apply(adaptor, images, model_and_second_call, out=out)
        return model(batch)

    answers = apply(adaptor, images, model_and_second_call, out=out)
    assert model.asked == answers.ledger.total == 50


@pytest.mark.usefixtures("three_pieces")
def test_a_listener_receives_the_plan_the_progress_and_the_notices(images, model, run) -> None:
    events = []
    apply(run, images, model, listener=events.append)
    assert isinstance(events[0], Planned)
    assert events[0].plan.total == 50
    progress = [event for event in events if isinstance(event, Answered)]
    assert [(each.purpose, each.done) for each in progress] == [
        ("serve", 20),
        ("serve", 40),
        ("serve", 50),
    ]


# -- facts about the model -----------------------------------------------------------------------

LOGITS = """
import numpy as np
WEIGHTS = np.random.default_rng(7).normal(size=(3, 4))
def answer(images):  # takes normalised pixels, returns logits
    return images.mean(axis=(2, 3)) @ WEIGHTS
"""
FACTS = dict(logits=True, mean=0.5, std=0.1)


@pytest.fixture
def run_with_facts(images, tmp_path):
    """The name of a model that needs facts, and a run with it in the folder "facts"."""
    (tmp_path / "model.py").write_text(LOGITS)
    name = f"{tmp_path}/model.py:answer"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = adapt(images, load_box(name, **FACTS), out=tmp_path / "facts", **FAST)
    return name, run


@pytest.mark.filterwarnings("error")
def test_a_model_given_by_path_gets_the_facts_of_the_run(images, run_with_facts, tmp_path) -> None:
    name, run = run_with_facts
    for source in (run, tmp_path / "facts"):
        answers = apply(source, images, name)  # without a notice: it is the same model
        np.testing.assert_array_equal(answers.probabilities, run.after)


def test_another_model_gets_the_facts_with_a_notice(images, run_with_facts, tmp_path) -> None:
    _, run = run_with_facts
    (tmp_path / "other.py").write_text(LOGITS)
    events = []
    answers = apply(run, images, f"{tmp_path}/other.py:answer", listener=events.append)
    np.testing.assert_array_equal(answers.probabilities, run.after)
    (notice,) = [event.text for event in events if isinstance(event, Notice)]
    assert "not the model the adaptor was learned for" in notice
    assert "taken over from the run" in notice
    assert "logits" in notice


def test_specified_facts_win_over_those_of_the_run(images, run_with_facts) -> None:
    name, run = run_with_facts
    changed = dict(FACTS, std=0.2)
    answers = apply(run, images, name, std=0.2)
    expected = load_box(name, **changed)(run.adaptor(images))
    np.testing.assert_array_equal(answers.probabilities, expected)
    assert not np.array_equal(answers.probabilities, run.after)


def test_facts_are_not_given_to_a_box_an_object_or_with_an_adaptor_alone(
    images, run_with_facts
) -> None:
    name, run = run_with_facts
    box = load_box(name, **FACTS)
    np.testing.assert_array_equal(apply(run, images, box).probabilities, run.after)
    with pytest.raises(BoxError, match="logits"):
        apply(run, images, lambda batch: load_box(name, **FACTS).function(batch))
    with pytest.raises(BoxError, match="logits"):
        apply(run.adaptor, images, name)


def test_what_an_onnx_file_declares_wins_over_the_run(images, tiny_onnx, tmp_path) -> None:
    declared = tiny_onnx(outputs=("logits",), facts=json.dumps({"logits": True, "std": [0.5] * 3}))
    plain = tiny_onnx(outputs=("logits",))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = adapt(images, load_box(plain, logits=True, std=0.1, mean=0.2), **FAST)
        answers = apply(run, images, declared)
    expected = load_box(declared)(run.adaptor(images))
    np.testing.assert_array_equal(answers.probabilities, expected)


def test_the_identity_answers_like_the_model(images, box) -> None:
    np.testing.assert_array_equal(apply(Identity(), images, box).probabilities, box(images))


def test_a_run_that_was_interrupted_before_it_had_an_adaptor_is_refused(images, tmp_path) -> None:
    model = make_black_box()
    adapt(images, model, method="dine", epochs=2, out=tmp_path / "run", stop=lambda: True)
    with pytest.raises(RunError, match="interrupted before it had an adaptor"):
        apply(tmp_path / "run", images, model)
