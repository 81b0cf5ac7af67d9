"""What `apply` costs besides the model: in memory, from JPEG files, in memory use, with workers.

    python benchmarks/archive.py [--only PART ...]       # about 12 minutes; writes each part
    python benchmarks/archive.py --small --out small.json
    python benchmarks/archive.py --table                 # only write the table again

Five parts, each compared inside one run, because seconds depend on the machine:

- memory: images of 32 px that are in memory, against a plain loop over ONNX Runtime that gets
  normalised floats; with no adaptor, and with a typical one of the restoration bank.
- jpeg: files of 224 px, against decoding alone on all cores and against the model alone.
- resident: the peak memory of an archive of few and of many images.
- sample: opening 5,000 images, chosen at random, of an archive of few and of many.
- workers: two processes against one, with one thread each, between the first and the last shard.

Needs the real images and models (SODA_TTA_DATA) and an idle machine: --small is for a first look.
Writes results/archive.json and the table of docs/how-to/scale.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
from PIL import Image

from pages import markdown, replace_tables
from soda_tta import apply, zoo
from soda_tta.adaptors import Bank, Identity
from soda_tta.data.decoding import decode_bytes
from soda_tta.data.home import data_file
from soda_tta.scale.archive import apply_archive
from soda_tta.scale.processes import Processes

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "archive.json"
PAGE = ROOT / "docs" / "how-to" / "scale.md"
SMALL_MODEL = "cifar10_resnet20"
LARGE_MODEL = "imagenet_resnet50"
# What soda-e adopts on hazy or dark images: two parts of the bank, one of them a filter.
TYPICAL = {"brightness": 0.2, "median": 0.5}
BATCH = 64  # that of the box
TURNS = 10  # parts of the images in memory
TYPICAL_TURNS = 4  # one in so many parts also with a typical adaptor
ROUNDS = 3  # plain and `apply` alternate; the best round of each counts
SAMPLE = 5000  # images that a run on an archive learns from
FULL = {
    "memory": 100_000,
    "jpeg": 300,
    "resident": (10_000, 200_000),
    "workers": 40_000,
    "sample": (10_000, 1_000_000),
}
SMALL = {
    "memory": 4000,
    "jpeg": 200,
    "resident": (2000, 20_000),
    "workers": 4000,
    "sample": (6000, 60_000),
}
GOALS = {
    "memory, identity / plain": 0.90,
    "jpeg / slower of decoding and model": 0.85,
    "resident, many / few images": 1.05,
    "two workers / one": 1.8,
}
RESIDENT = """
import re, sys
from pathlib import Path
from soda_tta.adaptors import Identity
from soda_tta.scale.archive import apply_archive
apply_archive(Identity(), sys.argv[1], sys.argv[2], sys.argv[3])
status = Path("/proc/self/status").read_text()  # getrusage would include the parent's
print(int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024)
"""


def best(functions: dict, rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """The shortest seconds of each function, and its processor seconds; they take turns.

    Processor seconds are without the time that other processes take.
    """
    clock: dict[str, list[float]] = {name: [] for name in functions}
    processor: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            began, used = time.perf_counter(), time.process_time()
            function()
            clock[name].append(time.perf_counter() - began)
            processor[name].append(time.process_time() - used)
    return least(clock), least(processor)


def least(seconds: dict[str, list[float]]) -> dict[str, float]:
    return {name: min(times) for name, times in seconds.items()}


def cifar(count: int) -> np.ndarray:
    """CIFAR-10 images, repeated as often as needed, uint8 NHWC."""
    images = np.load(data_file("cifar10-test.npz"))["images"]
    return np.resize(images, (count, *images.shape[1:]))


def plain_loop(box, ready):
    """Nothing but ONNX Runtime, on floats that are normalised already."""

    def run():
        for start in range(0, len(ready), BATCH):
            box.session.run([box.output_name], {box.input_name: ready[start : start + BATCH]})

    return run


def in_memory(count: int, rounds: int) -> dict:
    """Plain queries and `apply` take turns on a tenth of the images each; medians count."""
    box = zoo.deployed(SMALL_MODEL)
    images = cifar(count).transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
    typical = Bank().adaptor(TYPICAL)
    clock: dict[str, list[float]] = {"identity": [], "typical": []}
    processor: dict[str, list[float]] = {"identity": [], "typical": []}
    plain = []
    for number, part in enumerate(np.array_split(images, TURNS)):
        starts = range(0, len(part), BATCH)
        ready = np.concatenate([box.input.prepare(part[start : start + BATCH]) for start in starts])
        functions = {
            "plain": plain_loop(box, ready),
            "identity": lambda part=part: apply(Identity(), part, box),
        }
        if number % TYPICAL_TURNS == 0:
            functions["typical"] = lambda part=part: apply(typical, part, box)
        seconds, used = best(functions, rounds)
        plain.append(len(part) / seconds["plain"])
        for name in set(functions) - {"plain"}:
            clock[name].append(seconds["plain"] / seconds[name])
            processor[name].append(used["plain"] / used[name])
    return {
        "images": count,
        "plain_images_per_second": float(np.median(plain)),
        "memory, identity / plain": float(np.median(clock["identity"])),
        "identity / plain, processor time": float(np.median(processor["identity"])),
        "typical adaptor / plain": float(np.median(clock["typical"])),
        "typical adaptor / plain, processor time": float(np.median(processor["typical"])),
    }


def from_jpeg(count: int, rounds: int) -> dict:
    box = zoo.deployed(LARGE_MODEL)
    paths = sorted(data_file("imagenet-val-2000/images").iterdir())[:count]
    ready = np.zeros((BATCH, 3, 224, 224), np.float32)
    pool = ThreadPoolExecutor(os.cpu_count())

    def decode(path):
        pixels = decode_bytes(path.read_bytes(), path.name).pixels
        return np.ascontiguousarray(pixels.transpose(2, 0, 1), np.float32) / np.float32(255)

    def decode_all():
        for _ in pool.map(decode, paths):
            pass

    def model_alone():
        for start in range(0, count, BATCH):
            batch = ready[: min(BATCH, count - start)]
            box.session.run([box.output_name], {box.input_name: batch})

    with tempfile.TemporaryDirectory() as folder:
        chosen = Path(folder) / "chosen"
        chosen.mkdir()
        for path in paths:
            (chosen / path.name).symlink_to(path)
        outs = iter(range(rounds))
        seconds, processor = best(
            {
                "decoding": decode_all,
                "model": model_alone,
                "apply": lambda: apply_archive(
                    Identity(), chosen, box, Path(folder) / f"out-{next(outs)}"
                ),
            },
            rounds,
        )
        model = str(zoo.onnx_path(LARGE_MODEL))
        megabytes = peak_megabytes(chosen, model, Path(folder) / "out-peak")
    slower = max(seconds["decoding"], seconds["model"])
    return {
        "images": count,
        "decoding_images_per_second": count / seconds["decoding"],
        "model_images_per_second": count / seconds["model"],
        "jpeg / slower of decoding and model": slower / seconds["apply"],
        "apply / decoding and model, processor time": (processor["decoding"] + processor["model"])
        / processor["apply"],
        "megabytes": megabytes,
    }


def png_folder(folder: Path, count: int) -> Path:
    """PNG files of 32 px, 1,000 per folder; links to 1,000 different ones."""
    sources = folder / "sources"
    sources.mkdir()
    for number, pixels in enumerate(cifar(min(count, 1000))):
        Image.fromarray(pixels).save(sources / f"{number:03}.png")
    target = folder / "images"
    names = sorted(sources.iterdir())
    for number in range(count):
        below = target / f"{number // 1000:04}"
        below.mkdir(parents=True, exist_ok=True)
        (below / f"{number:07}.png").hardlink_to(names[number % len(names)])
    return target


def peak_megabytes(images: Path, model: str, out: Path) -> float:
    """The peak memory of a process that answers an archive."""
    command = [sys.executable, "-c", RESIDENT, images, model, out]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def resident(counts: tuple[int, int]) -> dict:
    model = str(zoo.onnx_path(SMALL_MODEL))
    megabytes = []
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            images = png_folder(Path(folder), count)
            megabytes.append(peak_megabytes(images, model, Path(folder) / "out"))
    return {
        "images": counts,
        "megabytes": megabytes,
        "resident, many / few images": megabytes[1] / megabytes[0],
    }


def with_workers(count: int) -> dict:
    """Images per second between the first and the last shard: processes take seconds to start.

    Also per second of processor time, of which a busy machine gives two workers less.
    """
    model = str(zoo.onnx_path(SMALL_MODEL))
    shard = count // 40
    rates, work = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        images = png_folder(Path(folder), count)
        for jobs in (1, 2):
            ends: list[tuple[float, float]] = []
            apply_archive(
                Identity(),
                images,
                model,
                Path(folder) / f"out-{jobs}",
                shard_size=shard,
                backend=Processes(jobs),
                progress=lambda done, total, ends=ends: ends.append(
                    (time.perf_counter(), processor_seconds())
                ),
            )
            after = ends[2 * jobs :]  # every worker has loaded its model by then
            finished = shard * (len(after) - 1)
            rates[jobs] = finished / (after[-1][0] - after[0][0])
            work[jobs] = finished / (after[-1][1] - after[0][1])
    return {
        "images": count,
        "one_worker_images_per_second": rates[1],
        "two workers / one": rates[2] / rates[1],
        "images_per_processor_second": work[1],
        "two workers / one, processor time": 2 * work[2] / work[1],
    }


def processor_seconds() -> float:
    """Of this process and of its workers."""
    own = psutil.Process()
    times = [each.cpu_times() for each in (own, *own.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def table(results: dict) -> str:
    """The stored results as a Markdown table."""
    memory, jpeg = results["memory"], results["jpeg"]
    few, many = results["resident"]["megabytes"]
    counts = " and ".join(f"{count:,}" for count in results["resident"]["images"])
    rows = [
        ["what", "compared with", "ratio", "goal"],
        [
            f"{memory['images']:,} images of 32 px in memory, no adaptor",
            f"plain ONNX Runtime, {memory['plain_images_per_second']:,.0f} images/s",
            f"{memory['memory, identity / plain']:.2f}",
            "0.90",
        ],
        [
            "the same, processor time",
            "the same",
            f"{memory['identity / plain, processor time']:.2f}",
            "-",
        ],
        [
            "the same with a typical adaptor",
            "the same",
            f"{memory['typical adaptor / plain']:.2f}",
            "-",
        ],
        [
            f"{jpeg['images']:,} JPEG files of 224 px, ResNet-50",
            f"the slower of decoding ({jpeg['decoding_images_per_second']:,.0f} images/s) and "
            f"the model ({jpeg['model_images_per_second']:,.0f})",
            f"{jpeg['jpeg / slower of decoding and model']:.2f}",
            "0.85",
        ],
        [
            f"peak memory: {counts} images of 32 px",
            f"{few:,.0f} MB and {many:,.0f} MB",
            f"{results['resident']['resident, many / few images']:.3f}",
            "1.05",
        ],
        [
            "two workers with one thread each",
            f"one worker, {results['workers']['one_worker_images_per_second']:,.0f} images/s",
            f"{results['workers']['two workers / one']:.2f}",
            "1.8",
        ],
    ]
    workers = results["workers"]
    if "two workers / one, processor time" in workers:
        rows.append(
            [
                "the same, twice the images per second of processor time",
                f"one worker, {workers['images_per_processor_second']:,.0f} images/s",
                f"{workers['two workers / one, processor time']:.2f}",
                "-",
            ]
        )
    sample = results["sample"]
    small, large = (f"{count:,}" for count in sample["images"])
    rows.append(
        [
            f"a sample of {SAMPLE:,} images of {large} files",
            f"of {small}: {sample['seconds'][0]:.1f} s, {sample['megabytes'][0]:.0f} MB; of "
            f"{large}: {sample['seconds'][1]:.1f} s, {sample['megabytes'][1]:.0f} MB",
            f"{sample['seconds_per_million_names']:.1f} s per million names",
            "-",
        ]
    )
    return markdown(rows)


SAMPLED = """
import re, sys, time
from pathlib import Path
from soda_tta import open_images
began = time.perf_counter()
images = open_images(sys.argv[1], sample=int(sys.argv[2]))
print(time.perf_counter() - began)
images.fingerprint()
status = Path("/proc/self/status").read_text()
print(int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024)
"""


def of_sample(counts: tuple[int, int]) -> dict:
    """Seconds until a sample can be learned from: names are listed, 5,000 images are decoded."""
    seconds, megabytes = [], []
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            images = png_folder(Path(folder), count)
            command = [sys.executable, "-c", SAMPLED, images, str(SAMPLE)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            first, second = done.stdout.split()
            seconds.append(float(first))
            megabytes.append(float(second))
    more = (counts[1] - counts[0]) / 1e6
    return {
        "images": counts,
        "seconds": seconds,
        "megabytes": megabytes,
        "seconds_per_million_names": (seconds[1] - seconds[0]) / more,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=OUT, help="where the results are written")
    parser.add_argument("--small", action="store_true", help="few images, one round")
    parser.add_argument("--only", nargs="+", choices=list(FULL), default=list(FULL))
    parser.add_argument("--table", action="store_true", help="only write the table again")
    options = parser.parse_args()
    counts = SMALL if options.small else FULL
    rounds = 1 if options.small else ROUNDS
    parts = {
        "memory": lambda: in_memory(counts["memory"], 1),
        "jpeg": lambda: from_jpeg(counts["jpeg"], rounds),
        "resident": lambda: resident(counts["resident"]),
        "workers": lambda: with_workers(counts["workers"]),
        "sample": lambda: of_sample(counts["sample"]),
    }
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in [] if options.table else options.only:
        results[name] = {"cores": os.cpu_count(), "load": os.getloadavg()[0], **parts[name]()}
        for key, value in results[name].items():
            goal = f" (goal {GOALS[key]})" if key in GOALS else ""
            shown = f"{value:.3f}" if isinstance(value, float) else value
            print(f"{name}: {key} = {shown}{goal}", flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    if options.out == OUT and set(results) == set(parts):
        PAGE.write_text(replace_tables(PAGE.read_text(), {"archive": table(results)}))


if __name__ == "__main__":
    main()
