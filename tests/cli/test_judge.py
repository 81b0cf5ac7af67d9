"""`soda-tta judge`: the user settles what the verdict left open."""

import json

import numpy as np
import pytest
from PIL import Image
from tests.engine.test_rejudge import dark, refused  # noqa: F401 - a fixture

from soda_tta import Run
from soda_tta.cli import main


@pytest.fixture
def folder(refused, tmp_path):  # noqa: F811
    run, labels = refused
    run.save(tmp_path / "run")
    np.save(tmp_path / "labels.npy", labels)
    return tmp_path


def test_labels_decide_and_the_folder_holds_the_new_verdict(folder, capsys) -> None:
    assert main(["judge", str(folder / "run"), "--labels", str(folder / "labels.npy")]) == 0
    out = capsys.readouterr().out
    assert "Adopt: on 40 independent labelled images" in out and "brighter" in out
    assert Run.load(folder / "run").verdict.adopt


def test_accept_and_json(folder, capsys) -> None:
    assert main(["judge", str(folder / "run"), "--accept", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["verdict"]["basis"] == "user" and facts["verdict"]["adopt"]
    assert len(facts["earlier_verdicts"]) == 1


def test_more_images(folder, capsys) -> None:
    np.save(folder / "more.npy", dark(60, seed=1)[0])
    model = folder / "model.py"
    model.write_text("from tests.engine.test_rejudge import brightness as answer\n")
    words = ["judge", str(folder / "run"), "--more-images", str(folder / "more.npy")]
    assert main(words) == 2
    assert "--model" in capsys.readouterr().err
    assert main([*words, "--model", f"{model}:answer"]) == 0
    assert "Adopt: on 100 independent images" in capsys.readouterr().out


def test_more_images_are_read_as_by_the_other_commands(folder, capsys, monkeypatch) -> None:
    more = folder / "more"
    more.mkdir()
    Image.new("RGBA", (8, 8), (0, 100, 200, 128)).save(more / "a.png")
    (more / "b.jpg").write_text("not a photograph")
    model = folder / "model.py"
    model.write_text("from tests.engine.test_rejudge import brightness as answer\n")
    words = ["judge", str(folder / "run"), "--more-images", str(more), "--model", f"{model}:answer"]
    assert main(words) == 2
    assert "b.jpg cannot be read" in capsys.readouterr().err
    received = []

    def judged(run, *, images, **_):
        received.append(images[:])
        return run

    monkeypatch.setattr("soda_tta.engine.rejudge.rejudge", judged)
    assert main([*words, "--on-bad-image", "skip", "--over", "black"]) == 0
    assert (received[0][0, :, 0, 0] * 255).round().tolist() == [0, 50, 100]


@pytest.mark.parametrize("words", [["--accept"], ["--labels", "none.csv"]])
def test_a_folder_without_a_run_is_refused(tmp_path, capsys, words) -> None:
    assert main(["judge", str(tmp_path), *words]) == 2
    assert "holds no run" in capsys.readouterr().err
