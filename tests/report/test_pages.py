"""The page as a reader gets it."""

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from soda_tta import adapt
from soda_tta.engine.passes import UNREACHED
from soda_tta.errors import ImageError, RunError
from soda_tta.report import write_report
from soda_tta.report.strip import most_changed

from .conftest import SMALL, answered, judged, rows


class Tags(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes) -> None:
        self.found.append((tag, dict(attributes)))


def check_contained(html: str) -> None:
    """Nothing is loaded from anywhere, nothing runs, and it is small enough to send."""
    assert len(html.encode()) < 2_000_000
    for tag, attributes in Tags(html).found:
        assert tag not in ("script", "iframe", "object", "embed", "base", "form"), tag
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href", "srcset", "action"):
                assert value is None or value.startswith(("data:", "#")), (tag, value)
    assert "url(http" not in html and "@import" not in html
    assert "nan" not in re.sub(r"[\w/+]*base64[^\"]*", "", html).lower().split()


def test_a_run_with_everything(run, images, model, tmp_path) -> None:
    labels = model(images).argmax(axis=1)
    path = run.report(tmp_path / "page.html", images=images, labels=labels, price=1.5)
    html = path.read_text()
    check_contained(html)
    for section in (
        *(
            "Is it right more often?",
            "Which answers changed?",
            "What does the adaptor do?",
            "How did it learn?",
        ),
        *(
            "How sure is the model?",
            "Protocol card",
            "This run once more",
            "Which class is taken for which",
        ),
        *("estimated accuracy", "true accuracy", "calibration error", "1.50 at 1.5 a thousand"),
    ):
        assert section in html, section
    assert (
        html.count("<svg") == 7
    )  # shares, tone, detail, objective, information, confidence, reliability
    assert html.count("<img") >= 9 and "difference ×4" in html


def test_the_same_run_gives_the_same_page(run, tmp_path) -> None:
    assert (
        run.report(tmp_path / "a.html").read_bytes() == run.report(tmp_path / "b.html").read_bytes()
    )


def test_no_two_figures_share_a_name(run, images, tmp_path) -> None:
    html = run.report(tmp_path / "page.html", images=images, labels=np.zeros(50, int)).read_text()
    names = re.findall(r'\sid="([^"]*)"', html)
    assert len(names) == len(set(names)) and names
    assert set(re.findall(r"url\(#([^)]*)\)", html)) <= set(names)


EVIL = (
    "<script>alert('evil')</script>\"'><img src=http://evil.example/x onerror=alert(1)>$a_b$&amp;"
)


def test_names_cannot_smuggle_anything_in(tmp_path) -> None:
    classes = [EVIL, "</style><script>alert(2)</script>", "{{ 7 * 7 }}"]
    names = [f"{EVIL}{index}.png" for index in range(6)]
    verdict = judged(True, EVIL)
    run = answered(rows(0, 1, 2, 0, 1, 2), rows(0, 0, 0, 0, 1, 1), names, verdict)
    run.notices.append(EVIL)
    run.reason = run.card["method"] = run.card["command"] = EVIL
    run.card["settings"] = {EVIL: EVIL}
    pictures = np.random.default_rng(0).random((6, 3, 8, 8)).astype(np.float32)
    other = answered(rows(0, 1, 2, 0, 1, 2), rows(2, 1, 2, 0, 1, 2), names)
    for subjects in (run, [run, other]):
        made = write_report(
            subjects,
            tmp_path / "page.html",
            images=pictures,
            labels=[0, 0, 0, 0, 1, 1],
            classes=classes,
        )
        html = made.path.read_text()
        check_contained(html)
        assert (
            "&lt;script&gt;alert(&#39;evil&#39;)" in html
            and "{{ 7 * 7 }}" in html
            and "49" not in html.split()
        )


def test_a_file_name_that_is_not_utf8_does_not_break_the_page(tmp_path) -> None:
    name = b"caf\xe9.png".decode("utf-8", "surrogateescape")
    pictures = np.zeros((2, 3, 8, 8), np.float32)
    made = write_report(
        answered(rows(0, 1), rows(1, 1), [name, "b"]), tmp_path / "page.html", images=pictures
    )
    assert "caf\N{REPLACEMENT CHARACTER}.png" in made.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (rows(0, 1, 1), rows(0, 1, 2)),  # three images
        (rows(0, 0, 0), rows(0, 0, 0)),  # one class, nothing changed
        (rows(0), rows(1)),  # one image
        (rows(0, 1, 1, of=1000), rows(0, 7, 1, of=1000)),  # as many classes as ImageNet
        (rows(0, 1, sure=1.0), rows(1, 1, sure=1.0)),  # certain
        (rows(0, 1), None),  # not answered
    ],
)
def test_little_data_is_no_trouble(tmp_path, before, after) -> None:
    run = answered(before, after)
    for labels in (None, np.zeros(len(before), int)):
        made = write_report(run, tmp_path / "page.html", labels=labels)
        check_contained(made.path.read_text())
        assert made.facts["changed_answers"] == (None if after is None else run.changed)


def test_a_million_images_fit_in_memory_and_in_seconds(tmp_path) -> None:
    code = f"""
import re, time
from pathlib import Path
import numpy as np
generator = np.random.default_rng(0)
before = generator.dirichlet(np.full(10, 0.3), 1_000_000).astype(np.float32)
after = before[::-1].copy()
from soda_tta import Run
from soda_tta.adaptors import Identity
from soda_tta.box import Ledger
ledger = Ledger(); ledger.spend(2_000_000, "select")
run = Run(before, after, Identity(), ledger, [], "finished", "", {{"method": "x", "images": {{"count": 1_000_000}}}},
          [f"{{i}}.png" for i in range(1_000_000)], 1.0)
from soda_tta.report import write_report
from soda_tta.report.strip import most_changed
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
began, held = time.perf_counter(), peak()
made = write_report(run, {str(tmp_path / "page.html")!r}, labels=after.argmax(1))
print(time.perf_counter() - began, peak() - held, made.facts["accuracy"]["after"]["value"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, megabytes, right = map(float, done.stdout.split())
    assert right == 1 and seconds < 60 and megabytes < 500
    assert (tmp_path / "page.html").stat().st_size < 500_000


def test_large_images_keep_the_page_small(tmp_path) -> None:
    pictures = np.random.default_rng(0).integers(
        0, 256, (12, 300, 400, 3), np.uint8
    )  # noise: the worst for JPEG
    model = lambda images: np.stack([images.mean((1, 2, 3)), 1 - images.mean((1, 2, 3))], 1)  # noqa: E731
    run = adapt(pictures, model, method="soda", epochs=1, width=2, batch=12)
    check_contained(run.report(tmp_path / "page.html", images=pictures).read_text())


def test_images_of_another_run_are_refused(run, images, tmp_path) -> None:
    for others, says in (
        (images[:49], "49 images"),
        (images[:, :, :7], "of 8x7"),
        (images[::-1], "other ones"),
    ):
        with pytest.raises(ImageError, match=says):
            run.report(tmp_path / "page.html", images=others)
    assert not (tmp_path / "page.html").exists()


def test_a_method_without_an_adaptor_says_so(images, model, tmp_path) -> None:
    run = adapt(images, model, method="lame")
    html = run.report(tmp_path / "page.html", images=images).read_text()
    assert "the images are left as they are" in html and "soda-tta export" not in html


def verdicts(tmp_path, run, labels=None) -> tuple[str, str]:
    html = write_report(run, tmp_path / "page.html", labels=labels).path.read_text()
    tone, word = re.search(
        r'<section class="verdict (\w+)">\s*<strong>(.*?)</strong>', html
    ).groups()
    return tone, word


def test_the_verdict_follows_labels_then_the_method_then_nobody(tmp_path) -> None:
    count = 100
    truth = np.arange(count) % 3
    right, wrong = rows(*truth), rows(*(truth + 1) % 3)
    adopt, refuse = judged(True), judged(False)
    assert verdicts(tmp_path, answered(wrong, right), truth) == ("good", "Use it: it helps")
    assert verdicts(tmp_path, answered(right, wrong, None, adopt), truth) == (
        "bad",
        "Do not use it: it harms",
    )
    assert verdicts(tmp_path, answered(right, right), truth) == ("open", "No clear difference")
    assert verdicts(tmp_path, answered(wrong, right, None, adopt)) == ("good", "Use it")
    assert verdicts(tmp_path, answered(wrong, right, None, refuse)) == (
        "bad",
        "Leave the images as they are",
    )
    assert verdicts(tmp_path, answered(wrong, right)) == ("open", "Undecided")
    assert verdicts(tmp_path, answered(right, right)) == ("open", "Nothing changed")
    assert verdicts(tmp_path, answered(right, None)) == ("open", "No answers yet")


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("verdict", [None, judged(True)])
def test_images_a_budget_no_longer_reached_are_told_of_at_the_top(
    tmp_path, after: int, verdict
) -> None:
    notice = f"7 images {UNREACHED}"
    run = replace(answered(rows(*[0] * 20), rows(*[after] * 20), None, verdict), notices=[notice])
    assert notice in write_report(run, tmp_path / "p.html").facts["headline"]


def test_a_class_that_lost_is_named_although_the_mean_rose(tmp_path) -> None:
    truth = np.repeat([0, 1, 2], 40)
    run = answered(rows(*np.repeat([1, 0, 2], 40)), rows(*np.repeat([0, 1, 0], 40)))
    facts = write_report(
        run, tmp_path / "p.html", labels=truth, classes=["cat", "dog", "frog"]
    ).facts
    assert (
        facts["headline"][0] == "Use it: it helps."
        and "Not for every class: frog -100.0 points." in facts["headline"]
    )


def test_the_strip_shows_some_that_became_wrong() -> None:
    distance, before = np.linspace(1, 2, 1000), np.arange(1000) % 10
    after, harmed = (before + 1) % 10, np.arange(1000) < 50
    chosen = most_changed(distance, before, after, harmed)
    assert len(set(chosen.tolist())) == 12 and harmed[chosen].sum() == 4
    pairs = list(zip(before[chosen[:8]], after[chosen[:8]], strict=True))
    assert max(pairs.count(pair) for pair in pairs) <= 2 and chosen[0] == 999
    assert len(most_changed(distance[:1], before[:1], after[:1], None)) == 1


def test_labels_of_some_images_measure_those(tmp_path) -> None:
    labels = np.array([0, -1, -1, -1])
    facts = write_report(
        answered(rows(1, 0, 0, 0), rows(0, 1, 1, 1)), tmp_path / "p.html", labels=labels
    ).facts
    assert (
        facts["accuracy"]["images"] == 1
        and facts["accuracy"]["mended"] == 1
        and facts["accuracy"]["harmed"] == 0
    )


def test_the_command_on_the_page_makes_the_same_run(tmp_path, model, images) -> None:
    (tmp_path / "model.py").write_text(
        "import numpy as np\n"
        "weights = np.random.default_rng(7).normal(size=(3, 4))\n"
        "def predict(images):\n"
        "    return 8 * (images.mean(axis=(1, 2)) - 0.1) @ weights\n"
    )
    np.save(tmp_path / "night.npy", images)
    from soda_tta.cli import main

    words = [
        "adapt",
        "--method",
        "soda",
        "--model",
        f"{tmp_path}/model.py:predict",
        "--layout",
        "NHWC",
    ]
    words += [
        "--mean",
        "0.1,0.2,0.3",
        "--logits",
        "--images",
        f"{tmp_path}/night.npy",
        "--budget",
        "30",
    ]
    words += ["--seed", "3", "--out", f"{tmp_path}/first"]
    for name, value in SMALL.items():
        words += ["--set", f"{name}={value}"]
    assert main(words) == 0
    html = write_report(tmp_path / "first", tmp_path / "page.html").path.read_text()
    command = re.search(r"<h3>This run once more</h3>\s*<pre>(.*?)</pre>", html, re.DOTALL)[1]
    places = {
        "MODEL": f"{tmp_path}/model.py:predict",
        "IMAGES": f"{tmp_path}/night.npy",
        "RUN": f"{tmp_path}/second",
    }
    assert main([places.get(word, word) for word in shlex.split(command)[1:]]) == 0
    for name in ("predictions.csv", "adaptor.safetensors", "history.jsonl"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_a_remembered_command_is_shown_without_its_password_and_finds_the_images(
    run, images, tmp_path
) -> None:
    np.save(tmp_path / "night.npy", images)
    run.card["command"] = [
        "adapt",
        "--method",
        "soda",
        "--model",
        "https://me:secret@host/v2/models/a b",
        "--images",
        f"{tmp_path}/night.npy",
    ]
    html = run.report(tmp_path / "page.html").read_text()
    assert (
        "secret" not in html
        and "https://...@host/v2/models/a b" in html
        and html.count("<img") >= 9
    )
    np.save(
        tmp_path / "night.npy", images[::-1]
    )  # other images lie there now: not shown, and no error
    assert "<img" not in run.report(tmp_path / "page.html").read_text()


def test_the_command_once_more_has_another_folder_however_it_was_put(run, tmp_path) -> None:
    for out in (["--out", "runs/night"], ["--out=runs/night"]):
        run.card["command"] = [
            "adapt",
            "--model",
            "m.onnx",
            "--images",
            "night",
            *out,
            "--seed",
            "1",
        ]
        html = run.report(tmp_path / "page.html").read_text()
        command = re.search(r"<h3>This run once more</h3>\s*<pre>(.*?)</pre>", html, re.DOTALL)[1]
        assert "runs/night" not in command and re.search("--out[ =]RUN --seed 1", command)


def test_runs_side_by_side(images, model, tmp_path) -> None:
    labels = model(images).argmax(axis=1)
    first = adapt(images, model, method="soda", **SMALL)
    second = adapt(images, model, method="soda", **{**SMALL, "lr": 0.5}, seed=1)
    made = write_report(
        [first, second, adapt(images, model, method="lame")],
        tmp_path / "page.html",
        images=images,
        labels=labels,
    )
    html = made.path.read_text()
    check_contained(html)
    assert (
        "3 runs side by side" in html
        and "soda (2)" in html
        and "numbers.lr" in html
        and "Do they agree?" in html
    )
    assert [facts["title"] for facts in made.facts["runs"]] == ["soda", "soda (2)", "lame"]


def test_runs_on_other_images_are_compared_in_numbers_only(images, model, tmp_path) -> None:
    runs = [
        adapt(images, model, method="soda", **SMALL),
        adapt(images[:20], model, method="soda", **SMALL),
    ]
    html = write_report(runs, tmp_path / "page.html").path.read_text()
    assert "Do they agree?" not in html and "In numbers" in html


def test_nothing_to_report_on_is_an_error(tmp_path) -> None:
    with pytest.raises(RunError, match="nothing to report"):
        write_report([], tmp_path / "page.html")


def test_a_folder_of_files_is_shown_at_the_size_the_run_had(tmp_path, model) -> None:
    for number in range(4):
        pixels = np.random.default_rng(number).integers(0, 256, (12, 20, 3), np.uint8)
        (tmp_path / "night").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "night" / f"{number}.png")
    from soda_tta.data import open_images

    run = adapt(open_images(tmp_path / "night", 8), model, method="soda", **SMALL)
    assert "<img" in run.report(tmp_path / "page.html", images=tmp_path / "night").read_text()
