"""Your own Dask pipeline with `apply` as one of its steps.

    python examples/archive_dask.py [SCHEDULER]

Each partition is a list of records that hold the bytes of an image, as your pipeline reads them
from wherever they are. Without an address, two workers are started on this machine. Needs
`pip install 'soda-tta[demo,dask]'`. For a whole archive, `soda-tta apply` does all of
this itself: docs/how-to/scale.md.
"""

import io
import sys
import tempfile
from functools import cache

import dask
import numpy as np
from distributed import Client, LocalCluster
from PIL import Image

from soda_tta import apply, load_box
from soda_tta.adaptors import Bank
from soda_tta.zoo.digits import hazy_digits

PARTITIONS = 4
IMAGES = 200


@cache  # once per worker process, not once per partition
def load_model(path):
    return load_box(path, threads=1)


@dask.delayed
def answer(records, adaptor, model):
    """Your step before, this package, your step after."""
    images = np.stack([np.asarray(Image.open(io.BytesIO(record["png"]))) for record in records])
    answers = apply(adaptor, images, load_model(model))
    return [
        {"id": record["id"], "digit": int(digit), "confidence": float(confidence)}
        for record, digit, confidence in zip(
            records, answers.predictions, answers.confidences, strict=True
        )
    ]


def as_png(pixels) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def main() -> None:
    folder = tempfile.mkdtemp()
    model, images = hazy_digits(folder)
    adaptor = Bank().adaptor({"contrast": 0.5})  # or Adaptor.load("runs/night/adaptor.safetensors")
    pixels = np.load(images)[:IMAGES].transpose(0, 2, 3, 1)
    records = [{"id": number, "png": as_png(image)} for number, image in enumerate(pixels)]
    size = IMAGES // PARTITIONS
    partitions = [records[start : start + size] for start in range(0, IMAGES, size)]
    address = sys.argv[1] if len(sys.argv) > 1 else None
    cluster = address or LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with Client(cluster):
        results = dask.compute(*(answer(part, adaptor, str(model)) for part in partitions))
    rows = [row for part in results for row in part]
    sure = sum(row["confidence"] > 0.9 for row in rows)
    print(f"{len(rows)} answers, {sure} of them with a confidence above 0.9; first: {rows[0]}")


if __name__ == "__main__":  # workers on this machine import this file
    main()
