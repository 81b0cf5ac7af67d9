"""What users may state as a class prior."""

import json

import numpy as np
import pytest

from soda_tta import adapt, all_methods
from soda_tta.cli import main
from soda_tta.engine.stated_prior import prior_from, shares_of, stated_prior
from soda_tta.errors import MethodError

SODA_E = all_methods()["soda-e"]


@pytest.mark.parametrize(
    ("stated", "text"),
    [
        (None, "unknown"),
        ("unknown", "unknown"),
        ("balanced", "balanced"),
        ("3,1", "0.75,0.25"),
        ([0.5, 0.5], "0.5,0.5"),
        (np.array([1, 0, 3]), "0.25,0,0.75"),
    ],
)
def test_a_prior_is_kept_as_text(stated, text) -> None:
    assert stated_prior(stated) == text
    assert stated_prior(text) == text
    assert SODA_E.but(prior=stated).settings["prior"] == text


def test_files_hold_shares_or_counts(tmp_path) -> None:
    lines = tmp_path / "shares.txt"
    lines.write_text("30\n10\n")
    table = tmp_path / "shares.csv"
    table.write_text("class,share\n1,0.25\n0,0.75\n")
    plain = tmp_path / "shares.json"
    plain.write_text(json.dumps([0.75, 0.25]))
    for path in (lines, table, plain):
        assert stated_prior(path) == stated_prior(str(path)) == "0.75,0.25"


def test_the_shares_of_a_run_are_its_mean_answer(images, model, tmp_path) -> None:
    run = adapt(images, model, method="deployed", out=tmp_path / "run")
    text = prior_from(tmp_path / "run")
    assert text == stated_prior(run) == stated_prior(str(tmp_path / "run"))
    shares = shares_of(text, run.before.shape[1])
    np.testing.assert_allclose(shares, run.before.mean(axis=0), atol=1e-5)


@pytest.mark.parametrize(
    "wrong", ["evenly", [1.0], [0.5, -0.5], [0, 0], [np.nan, 1], "no/such/file", {"a": 1}]
)
def test_what_is_not_a_prior_is_refused_with_the_remedy(wrong) -> None:
    with pytest.raises(MethodError, match="give 'balanced'"):
        stated_prior(wrong)


@pytest.mark.parametrize("content", ["", "class\n", "1,2,3\n", "x\ny\n"])
def test_a_file_without_shares_is_refused(tmp_path, content) -> None:
    path = tmp_path / "shares.csv"
    path.write_text(content)
    with pytest.raises(MethodError, match=r"one share per class|give 'balanced'"):
        stated_prior(path)


def test_shares_for_another_number_of_classes_are_refused() -> None:
    with pytest.raises(MethodError, match="2 shares and the model 3 classes"):
        shares_of("0.5,0.5", 3)


def test_impossible_settings_are_refused() -> None:
    for settings in ({"views": 4}, {"views": 0}, {"average": True, "prior": "balanced"}):
        with pytest.raises(MethodError):
            SODA_E.but(**settings)


def test_the_command_line_states_priors_and_views(
    images, model, tiny_onnx, tmp_path, capsys
) -> None:
    adapt(images, model, method="deployed", out=tmp_path / "day")
    np.save(tmp_path / "night.npy", images)
    words = ["adapt", "--model", str(tiny_onnx()), "--images", str(tmp_path / "night.npy")]
    words += ["--dry-run", "--json", "--views", "2"]
    main([*words, "--prior-from", str(tmp_path / "day")])
    facts = json.loads(capsys.readouterr().out)
    assert facts["settings"]["prior"] == prior_from(tmp_path / "day")
    assert facts["settings"]["views"] == "2"
    assert facts["queries"]["view"] == len(images)
    assert main([*words, "--prior-from", str(tmp_path / "day"), "--prior", "balanced"]) != 0
    assert "give one of them" in capsys.readouterr().err
