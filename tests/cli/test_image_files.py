"""Image files as they are, through every command: the same pixels, and no crash in a paid run."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from soda_tta.data import Corrupted, open_images

from .conftest import ADAPT, APPLY, SMALL, Soda, column

SKIP = ["--on-bad-image", "skip"]


def received(place: Path) -> str:
    """A model that keeps what it receives."""
    (place / "keeping.py").write_text(
        "import numpy as np\n"
        "received = []\n"
        "def predict(images):\n"
        "    received.append(images.copy())\n"
        "    means = images.mean(axis=(2, 3))\n"
        "    return means / means.sum(axis=1, keepdims=True)\n"
    )
    return "keeping.py:predict"


@pytest.fixture
def odd(place: Path) -> Path:
    """Twelve files: 16 bits, transparent, turned by EXIF, of two frames; all of 16 x 16."""
    folder = place / "odd"
    folder.mkdir()
    generator = np.random.default_rng(0)
    turned = Image.Exif()
    turned[0x0112] = 6
    for number in range(3):
        deep = generator.integers(5000, 65_536, (16, 16)).astype(np.uint16)
        Image.fromarray(deep).save(folder / f"deep{number}.png")
        colours = generator.integers(0, 256, (16, 16, 4), np.uint8)
        Image.fromarray(colours).save(folder / f"glass{number}.png")
        picture = Image.fromarray(colours[..., :3].copy())
        picture.save(folder / f"photo{number}.jpg", exif=turned)
        picture.save(folder / f"pages{number}.tiff", save_all=True, append_images=[picture])
    return folder


def test_every_command_sends_the_same_pixels(soda: Soda, place: Path, odd: Path) -> None:
    model = ["--model", received(place)]
    images = ["--images", "odd", "--over", "10,20,30"]
    expected = open_images(odd, over="10,20,30")[:]
    assert not np.array_equal(expected, open_images(odd)[:])

    def sent() -> np.ndarray:
        import keeping

        pixels = np.concatenate(keeping.received)[:12]
        keeping.received.clear()
        return pixels

    assert soda("adapt", *model, *images, "--method", "deployed", "--out", "run").code == 0
    np.testing.assert_array_equal(sent(), expected)
    card = json.loads((place / "run" / "run.json").read_text())["images"]
    assert card["over"] == "10,20,30" and card["decoding"] == {
        "the first of several frames": 3,
        "transparent, laid over 10,20,30": 3,
        "turned upright (EXIF orientation)": 3,
    }
    assert soda("apply", "--adaptor", "run", *model, *images, "--out", "a.csv").code == 0
    np.testing.assert_array_equal(sent(), expected)
    assert soda("doctor", *model, *images).code in (0, 3, 4)
    np.testing.assert_array_equal(np.sort(sent(), axis=0), np.sort(expected, axis=0))
    assert soda("report", "run", "--images", "odd").code == 0  # which compares the pixels
    clean = ["--images", "night", "--clean", "odd", "--clean-accuracy=0.9", "--over", "10,20,30"]
    assert soda("adapt", *model, *clean, "--method", "deployed", "--out", "run2").code == 0
    import keeping

    np.testing.assert_array_equal(np.concatenate(keeping.received[1:]), expected)
    corrupt = ["corrupt", *images, "--corruption", "contrast", "--severity", "3"]
    assert soda(*corrupt, "--out", "faded").code == 0
    faded = Corrupted(open_images(odd, over="10,20,30"), "contrast", 3)
    np.testing.assert_array_equal(open_images("faded")[:], faded[:])


def test_unreadable_files_are_left_out_or_refused_by_corrupt_and_judge(
    soda: Soda, place: Path, odd: Path
) -> None:
    bad = place / "day" / "cat"
    bad.mkdir(parents=True)
    (bad / "0.jpg").write_text("text, not a photograph")
    Image.new("RGB", (32, 32), "red").save(bad / "1.png")
    (bad.parent / "dog").mkdir()
    Image.new("RGB", (32, 32), "red").save(bad.parent / "dog" / "2.png")
    (bad.parent / "dog" / "3.png").touch()
    corrupt = ["corrupt", "--images", "day", "--corruption", "contrast", "--out", "new"]
    done = soda(*corrupt)
    assert done.code == 2 and "0.jpg cannot be read" in done.err
    assert "--on-bad-image skip" in done.err and not (place / "new").exists()
    done = soda(*corrupt, *SKIP, "--json")
    assert done.code == 0 and json.loads(done.out)["skipped"] == ["cat/0.jpg", "dog/3.png"]
    names = sorted(str(path.relative_to(place / "new")) for path in (place / "new").rglob("*.png"))
    assert names == ["cat/1.png", "dog/2.png"]
    done = soda("judge", "run", "--more-images", "day", "--model", "m.py:f", *SKIP, "--over", "no")
    assert done.code == 2 and "'no' is not a colour" in done.err


def test_a_file_lost_in_the_middle_of_a_run_is_named_and_the_run_continues(
    soda: Soda, place: Path, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soda_tta.data.lazy.KEPT_BYTES", 0)  # a large set is decoded each time
    assert soda(*ADAPT, *SMALL, "--out", "whole").code == 0
    needed = model.queries
    lost = place / "night" / "07.png"
    content = lost.read_bytes()
    model.queries = 0

    def delete(_: float) -> None:
        if model.queries >= 60:
            lost.unlink(missing_ok=True)

    with monkeypatch.context() as patched:
        patched.setattr(model, "time", SimpleNamespace(sleep=delete))  # called in each request
        done = soda(*ADAPT, *SMALL, "--out", "run")
    assert done.code == 2 and "Traceback" not in done.err
    assert "07.png cannot be read" in done.err and "it could be read before: restore" in done.err
    assert re.search(r"kept; continue with: soda-tta adapt .* --resume\n", done.err)
    lost.write_bytes(content)
    assert soda(*ADAPT, *SMALL, "--out", "run", "--resume").code == 0
    for name in ("predictions.csv", "history.jsonl"):
        assert (place / "run" / name).read_bytes() == (place / "whole" / name).read_bytes()
    assert needed <= model.queries <= needed + 16 * 6  # at most the step under way is repeated


def test_apply_continues_after_a_file_was_lost(
    soda: Soda, place: Path, model: Any, finished_run: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soda_tta.data.lazy.KEPT_BYTES", 0)
    monkeypatch.setattr("soda_tta.data.images.AT_ONCE_FLOATS", 10 * 3 * 64)
    lost = place / "night" / "35.png"
    content = lost.read_bytes()

    def damage(_: float) -> None:
        lost.write_bytes(content[:40])

    with monkeypatch.context() as patched:
        patched.setattr(model, "time", SimpleNamespace(sleep=damage))
        done = soda(*APPLY, "--request-size", "10", "--out", "a.csv")
    assert done.code == 2 and "35.png cannot be read" in done.err and "--resume" in done.err
    assert 0 < model.queries < 40
    lost.write_bytes(content)
    assert soda(*APPLY, "--request-size", "10", "--out", "a.csv", "--resume").code == 0
    assert model.queries == 40 and len(column(place / "a.csv", "class")) == 40


@pytest.mark.parametrize("size", [(1, 1), (1, 9)])
def test_tiny_images_are_no_reason_to_crash(
    soda: Soda, place: Path, model: Any, size: tuple[int, int]
) -> None:
    (place / "dots").mkdir()
    for number in range(12):
        Image.new("RGB", size, (20 * number, 99, 3)).save(place / "dots" / f"{number:02}.png")
    for command in ("adapt --out run --budget 8", "doctor", "apply --adaptor run --out a.csv"):
        words = [*command.split(), "--model", "{model}:predict", "--images", "dots"]
        done = soda(*words)
        assert done.code in (0, 2, 3, 4) and "bug" not in done.err, (command, done)


def test_mixed_sizes_are_refused_before_the_first_query(
    soda: Soda, place: Path, model: Any
) -> None:
    Image.new("RGB", (9, 8)).save(place / "night" / "50.png")
    done = soda(*ADAPT, *SMALL, "--out", "run")
    assert done.code == 2 and "differ in size" in done.err and "--size" in done.err
    assert model.queries == 0
