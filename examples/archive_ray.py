"""Your own Ray Data pipeline with `apply` as its batch function.

    python examples/archive_ray.py [CLUSTER]

Ray Data reads, shuffles and writes; `Answer` is one stage of it. Without an address, Ray is started
on this machine. Needs `pip install 'soda-tta[demo]' 'ray[data]'`. For a whole archive,
`soda-tta apply` does all of this itself: docs/how-to/scale.md.
"""

import io
import sys
import tempfile

import numpy as np
import ray
import ray.data
from PIL import Image

from soda_tta import apply, load_box
from soda_tta.adaptors import Bank
from soda_tta.zoo.digits import hazy_digits

IMAGES = 200


class Answer:
    """Loads the model once per actor, then answers batch after batch."""

    def __init__(self, adaptor, model):
        self.adaptor = adaptor  # or a path to an adaptor.safetensors
        self.box = load_box(model, threads=1)

    def __call__(self, batch):
        images = np.stack([np.asarray(Image.open(io.BytesIO(data))) for data in batch["png"]])
        answers = apply(self.adaptor, images, self.box)
        return {
            "id": batch["id"],
            "digit": answers.predictions,
            "confidence": answers.confidences,
        }


def as_png(pixels) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def main() -> None:
    folder = tempfile.mkdtemp()
    model, images = hazy_digits(folder)
    adaptor = Bank().adaptor({"contrast": 0.5})
    own = {"num_cpus": 2, "include_dashboard": False} if len(sys.argv) < 2 else {}
    ray.init(address=sys.argv[1] if len(sys.argv) > 1 else "local", log_to_driver=False, **own)
    pixels = np.load(images)[:IMAGES].transpose(0, 2, 3, 1)
    records = [{"id": number, "png": as_png(image)} for number, image in enumerate(pixels)]
    answers = ray.data.from_items(records).map_batches(
        Answer,
        fn_constructor_args=(adaptor, str(model)),
        batch_size=50,
        concurrency=1,
    )
    rows = answers.take_all()  # or answers.write_parquet("s3://bucket/answers")
    sure = sum(row["confidence"] > 0.9 for row in rows)
    first = min(rows, key=lambda row: row["id"])
    print(f"{len(rows)} answers, {sure} of them with a confidence above 0.9; first: {first}")


if __name__ == "__main__":
    main()
