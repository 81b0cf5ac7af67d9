"""`adapt --sample`: a random sample of an archive, learned from like any other images."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from soda_tta import Run, adapt, apply_archive, open_images
from soda_tta.cli import main
from soda_tta.data.archives.contents import Loader
from soda_tta.data.archives.places import Place
from soda_tta.data.archives.sample import Reservoir
from soda_tta.errors import ImageError, MethodError, RunError
from soda_tta.report import write_report

FORMS = ["folder", "csv", "csv of addresses", "parquet of paths", "parquet of bytes"]
FORMS += ["parquet of structs", "folder of tars", "numbered tars", "starred tars"]
BRIEF = {"method": "soda", "epochs": 1, "batch": 60, "lr": 0.01}
SKIP = {"size": 8, "on_bad_image": "skip"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore:1 of")
def test_every_form_can_be_sampled(forms, form, photos, folder) -> None:
    """Of all images, the same pixels and names as from the files; of some, a part of these."""
    everything = open_images(str(folder), **SKIP)
    names = [everything.name(place) for place in range(len(everything))]
    sample = open_images(forms[form], sample=100, **SKIP)
    taken = [sample.name(place).rpartition("folder/")[2] for place in range(len(sample))]
    assert taken == names
    assert np.array_equal(sample[:], everything[:])
    assert sample.card()["sample"] == {"asked": 100, "of": len(photos), "seed": 0}

    some = open_images(forms[form], sample=9, seed=1, **SKIP)
    chosen = [some.name(place).rpartition("folder/")[2] for place in range(len(some))]
    assert chosen == [name for name in names if name in chosen]
    assert np.array_equal(some[:], everything[[names.index(name) for name in chosen]])
    again = open_images(forms[form], sample=9, seed=1, **SKIP)
    assert [again.name(place) for place in range(len(again))] == [
        some.name(place) for place in range(len(some))
    ]


def test_every_image_is_equally_likely() -> None:
    random = np.random.default_rng(0)
    counts = np.zeros(20)
    for _ in range(3000):
        reservoir = Reservoir(5, random)
        for place in range(20):
            if reservoir.wants():
                reservoir.add((0, place), place)
        assert len(reservoir.in_order()) == 5
        counts[reservoir.in_order()] += 1
    expected = 3000 * 5 / 20
    assert np.square(counts - expected).sum() / expected < 43.8  # chi-squared, 19, p = 0.001


def test_the_others_are_not_read(folder, tmp_path, monkeypatch) -> None:
    sample = open_images(folder, sample=6, size=8, seed=3, on_bad_image="fail")
    chosen = {sample.path(place) for place in range(len(sample))}
    assert len(chosen) == 6
    for path in folder.rglob("*.png"):
        if path not in chosen:
            path.write_bytes(b"no longer an image")
    assert np.array_equal(open_images(folder, sample=6, size=8, seed=3)[:], sample[:])


@pytest.mark.filterwarnings("ignore:1 of")
def test_only_chosen_images_of_a_store_are_fetched(forms, monkeypatch) -> None:
    fetched = []
    load = Loader.__call__
    monkeypatch.setattr(Loader, "__call__", lambda own: fetched.append(own.name) or load(own))
    sample = open_images(forms["folder"], sample=4, **SKIP)
    names = {sample.name(place) for place in range(len(sample))}
    assert len(fetched) == 4 and names <= set(fetched)


@pytest.mark.filterwarnings("ignore:")
def test_of_many_tars_some_are_opened(tars, memory) -> None:
    place = Place(memory)
    for number in range(40):
        place.write(f"part-{number:03}.tar", tars[0])
    sample = open_images(f"{memory}/*.tar", sample=30, **SKIP)
    facts = sample.card()["sample"]
    assert facts == {"asked": 30, "of": None, "seed": 0, "opened": 16, "containers": 40}
    more = open_images(f"{memory}/*.tar", sample=300, **SKIP)
    assert more.card()["sample"]["opened"] == 30


@pytest.mark.parametrize("source", ["memory://a/b", "x-{00..03}.tar", "y.parquet", "tars"])
def test_an_archive_is_not_opened_as_a_whole(source, tmp_path, monkeypatch, tars) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tars").mkdir()
    (tmp_path / "tars" / "a.tar").write_bytes(tars[0])
    with pytest.raises(ImageError, match=r"is an archive.*give sample=5000"):
        open_images(source)


@pytest.mark.parametrize(
    ("source", "count", "message"),
    [
        ("memory://nothing", 5, "does not exist"),
        ("photos", 0, "sample=0 is not valid"),
        ("empty", 5, "no image"),
    ],
)
def test_what_is_refused(folder, tmp_path, monkeypatch, source, count, message) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImageError, match=message):
        open_images(source, sample=count)


# -- runs ----------------------------------------------------------------------------------------


@pytest.fixture
def many(tmp_path) -> Path:
    """400 dark photographs in two folders."""
    from PIL import Image

    random = np.random.default_rng(5)
    for number in range(400):
        pixels = random.integers(0, 120, (8, 8, 3)).astype(np.uint8)
        path = tmp_path / "many" / "ab"[number % 2] / f"{number:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return tmp_path / "many"


def test_a_run_on_a_sample_is_one_on_the_same_images(many, model, tmp_path) -> None:
    run = adapt(str(many), model, sample=120, budget=8, out=tmp_path / "run", **BRIEF)
    assert len(run.before) == len(run.names) == 120
    assert run.ledger.total <= 8 * 120
    assert run.card.images["sample"] == {"asked": 120, "of": 400, "seed": 0}
    alone = adapt([many / name for name in run.names], model, budget=8, **BRIEF)
    assert np.array_equal(alone.probabilities, run.probabilities)
    assert Run.load(tmp_path / "run").names == run.names
    write_report(tmp_path / "run", tmp_path / "page.html", images=str(many))


def test_a_resumed_run_has_its_sample_although_the_archive_has_grown(many, model, tmp_path) -> None:
    out = tmp_path / "run"
    whole = adapt(str(many), model, sample=120, **BRIEF)
    calls = iter(range(100))
    begun = adapt(str(many), model, sample=120, out=out, stop=lambda: next(calls) > 0, **BRIEF)
    assert begun.stopped == "interrupted"
    for number in range(50):
        shutil.copy(many / "a" / "000.png", many / "a" / f"{number}-new.png")
    with pytest.raises(ImageError, match=r"another sample.*choose another out="):
        adapt(str(many), model, sample=110, out=out, resume=True, **BRIEF)
    with pytest.raises(RunError, match="already holds a run"):
        adapt(str(many), model, sample=120, out=out, **BRIEF)
    resumed = adapt(str(many), model, sample=120, out=out, resume=True, **BRIEF)
    assert resumed.names == whole.names
    assert np.array_equal(resumed.probabilities, whole.probabilities)
    assert not (out / "working").exists()
    # the page finds the images by their names
    page = write_report(out, tmp_path / "page.html", images=str(many))
    assert page.facts["images"] == 120


def test_a_folder_of_something_else_is_not_written_to(many, model, tmp_path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="not an empty folder"):
        adapt(str(many), model, sample=20, out=tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_run_without_answers(many, model, tmp_path) -> None:
    out = tmp_path / "run"
    run = adapt(str(many), model, sample=120, answers="none", out=out, **BRIEF)
    assert run.after is None and run.stopped == "finished"
    assert "evaluate" not in run.ledger.by_purpose()
    assert Run.load(out).after is None
    assert "because of --answers none" in " ".join(
        write_report(out, tmp_path / "page.html").facts["missing"]
    )
    summary = apply_archive(out, many, model, tmp_path / "answers")
    assert summary.images == summary.queries == 400


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"answers": "sample"}, "answers='sample' is not valid"),
        ({"answers": "none", "method": "lame"}, "lame leaves no adaptor"),
    ],
)
def test_answers_that_cannot_be(images, model, options, message) -> None:
    with pytest.raises(MethodError, match=message):
        adapt(images, model, **options)


# -- the command ---------------------------------------------------------------------------------


@pytest.fixture
def command(many, tiny_onnx, tmp_path, monkeypatch) -> list[str]:
    """The command without --sample, --answers and --out."""
    monkeypatch.chdir(tmp_path)
    return ["adapt", "--model", str(tiny_onnx()), "--images", "many", "--budget", "8"]


def test_learn_from_some_and_answer_all(command, capsys, rows) -> None:
    words = [*command, "--sample", "100", "--answers", "all", "--out", "run", "--json"]
    assert main([*words, "--dry-run"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["images"] == 100 and plan["sample"]["of"] == 400
    assert main(words) == 0
    printed = capsys.readouterr()
    assert "learning from 100 of 400 images, chosen at random" in printed.err
    facts = json.loads(printed.out)
    assert sum(facts["queries"].values()) <= 800
    assert facts["answers"]["images"] == facts["answers"]["queries"] == 400
    assert len(rows("run/answers")) == 400
    # a resume asks only for what is missing
    Path("run/answers/part-00000.parquet").unlink()
    assert main([*words, "--resume"]) == 0
    assert json.loads(capsys.readouterr().out)["answers"]["complete"]
    assert len(rows("run/answers")) == 400


def test_an_array_is_answered_in_one_file(command, capsys, images) -> None:
    np.save("many.npy", np.tile(images, (4, 1, 1, 1))[:80])
    words = [*command, "--sample", "40", "--answers", "all", "--out", "run"]
    words[words.index("many")] = "many.npy"
    assert main(words) == 0
    assert "80 answers, 80 queries -> run/answers.csv" in capsys.readouterr().err
    assert len(Path("run/answers.csv").read_text().splitlines()) == 81


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--images", "memory://a"], "give --sample 5000"),
        (["--sample", "0"], "--sample"),
    ],
)
def test_mistakes_on_the_command_line(command, capsys, words, message) -> None:
    try:
        assert main([*command, "--out", "run", *words]) == 2
    except SystemExit as error:
        assert error.code == 2
    assert message in capsys.readouterr().err
    assert not Path("run").exists()


def test_the_conditions_of_a_sample(command, capsys) -> None:
    assert main(["conditions", "--images", "many", "--sample", "90", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["images"] == 90
