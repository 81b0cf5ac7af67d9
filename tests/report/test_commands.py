"""The commands on a page."""

import re
import shlex
from dataclasses import replace

import numpy as np

from soda_tta.cli import main
from soda_tta.report import write_report
from soda_tta.report.commands import deployment_commands, reproduce_command
from soda_tta.report.record import record_of

from .conftest import SMALL

MODEL = (
    "import numpy as np\n"
    "weights = np.random.default_rng(7).normal(size=(3, 4))\n"
    "def predict(images):\n"
    "    return 8 * (images.mean(axis=(1, 2)) - 0.1) @ weights\n"
)


def repeat_command(html: str) -> str:
    return re.search(r"<h3>Repeat this run</h3>\s*<pre>(.*?)</pre>", html, re.DOTALL)[1]


def test_the_command_on_the_page_makes_the_same_run(tmp_path, images) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    np.save(tmp_path / "night.npy", images)
    paths = {
        "MODEL": f"{tmp_path}/model.py:predict",
        "IMAGES": f"{tmp_path}/night.npy",
        "RUN": f"{tmp_path}/second",
    }
    words = ["adapt", "--method", "soda", "--model", paths["MODEL"], "--layout", "NHWC"]
    words += ["--mean", "0.1,0.2,0.3", "--logits", "--images", paths["IMAGES"], "--budget", "30"]
    words += ["--seed", "3", "--out", f"{tmp_path}/first"]
    for name, value in SMALL.items():
        words += ["--set", f"{name}={value}"]
    assert main(words) == 0
    html = write_report(tmp_path / "first", tmp_path / "page.html").path.read_text()
    repeated = shlex.split(repeat_command(html))[1:]
    assert main([paths.get(word, word) for word in repeated]) == 0
    for name in ("predictions.csv", "adaptor.safetensors", "history.jsonl"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_a_recorded_command_is_shown_without_its_password_and_locates_the_images(
    run, images, tmp_path
) -> None:
    np.save(tmp_path / "night.npy", images)
    address = "https://me:secret@host/v2/models/a b"
    words = ["adapt", "--method", "soda", "--model", address]
    words += ["--images", f"{tmp_path}/night.npy"]
    run.card = replace(run.card, command=words)
    html = run.report(tmp_path / "page.html").read_text()
    assert "secret" not in html and "https://...@host/v2/models/a b" in html
    assert html.count("<img") >= 9
    # different images at the same place are not shown, and are not an error
    np.save(tmp_path / "night.npy", images[::-1])
    assert "<img" not in run.report(tmp_path / "page.html").read_text()


def test_the_repeated_run_gets_another_directory(run, tmp_path) -> None:
    for out in (["--out", "runs/night"], ["--out=runs/night"]):
        words = ["adapt", "--model", "m.onnx", "--images", "night", *out, "--seed", "1"]
        run.card = replace(run.card, command=words)
        command = repeat_command(run.report(tmp_path / "page.html").read_text())
        assert "runs/night" not in command and re.search("--out[ =]RUN --seed 1", command)


def test_a_foreign_command_is_quoted_and_shown_without_secrets(run) -> None:
    words = ["adapt", "--model", "http://u:pw@host/v2/models/m?key=s3cret", "--size", "8; rm -rf ~"]
    foreign = replace(run, card=replace(run.card, command=words))
    record = record_of(foreign)
    shown = "\n".join(
        [reproduce_command(record), *(text for _, text in deployment_commands(record))]
    )
    assert "--size '8; rm -rf ~'" in shown
    assert "s3cret" not in shown and "pw" not in shown


def test_control_characters_of_a_foreign_run_are_escaped_on_the_page(run, tmp_path) -> None:
    words = ["adapt", "--model", "m\x1b[2J.onnx", "--images", "\u202egnp"]
    foreign = replace(run, card=replace(run.card, command=words), reason="\x1b]0;x\x07")
    html = write_report(foreign, tmp_path / "page.html").path.read_text()
    assert "\x1b" not in html and "\u202e" not in html and r"m\x1b[2J.onnx" in html
