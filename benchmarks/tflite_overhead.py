"""What the TFLite box costs besides the model: images per second against the bare interpreter.

    python benchmarks/tflite_overhead.py [--out results/tflite_overhead.json]

The bare interpreter gets bytes that are ready. The box gets what every box gets, float32 images of
the model's size, and checks and converts them, and checks the probabilities. One thread each. Both
alternate in one run, and the fastest round of each counts: what disturbs a round only makes it
slower. The ratio is that of processor seconds, without the time that other processes take.
Needs the Coral models (SODA_TTA_DATA). The results are in docs/research/performance.md.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from soda_tta.box import load_box
from soda_tta.data.home import data_file

MODELS = (
    "mobilenet_v2_1.0_224_quant",
    "tf2_mobilenet_v2_1.0_224_ptq",
    "mobilenet_v1_0.25_128_quant",
)
IMAGES = 64  # one request
ROUNDS = 15


def timed(function, images) -> tuple[float, float]:
    """Processor seconds and seconds of one call."""
    processor = time.process_time()
    clock = time.perf_counter()
    function(images)
    return time.process_time() - processor, time.perf_counter() - clock


def measure(model: str) -> dict:
    path = data_file(f"models/coral/{model}.tflite")
    box = load_box(path, threads=1)
    height, width = box.input.size
    ready = np.random.default_rng(0).integers(0, 256, (IMAGES, height, width, 3), np.uint8)
    images = np.ascontiguousarray(ready.transpose(0, 3, 1, 2), np.float32) / 255

    interpreter = Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    image = interpreter.get_input_details()[0]["index"]
    scores = interpreter.get_output_details()[0]["index"]

    def bare(batch):
        for each in batch:
            interpreter.set_tensor(image, each[None])
            interpreter.invoke()
            interpreter.get_tensor(scores)

    bare(ready)  # warm up
    box(images)
    alone, boxed = [], []
    for _ in range(ROUNDS):
        alone.append(timed(bare, ready))
        boxed.append(timed(box, images))
    bare_processor, bare_clock = np.min(alone, axis=0)
    box_processor, box_clock = np.min(boxed, axis=0)
    return {
        "model": model,
        "size": height,
        "ratio": box_processor / bare_processor,
        "bare_images_per_second": IMAGES / bare_clock,
        "box_images_per_second": IMAGES / box_clock,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="also write the results as JSON")
    options = parser.parse_args()
    print("| model | pixels | bare interpreter | box | processor time, box / bare |")
    print("|---|---|---|---|---|")
    results = []
    for model in MODELS:
        row = measure(model)
        results.append(row)
        print(
            f"| {model} | {row['size']} | {row['bare_images_per_second']:.0f} images/s | "
            f"{row['box_images_per_second']:.0f} images/s | {row['ratio']:.3f} |",
            flush=True,
        )
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
