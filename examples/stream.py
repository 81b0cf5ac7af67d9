"""Adapt to images while they arrive: each batch is answered once, in order.

    python examples/stream.py

The stream survives a restart: it is saved after every batch and continues bit for bit.
"""

import tempfile
from pathlib import Path

import numpy as np

from soda_tta import Stream, load_box
from soda_tta.zoo.digits import hazy_digits, load_digits

BATCH = 128  # images that arrive together
BATCHES = 3
# The paper's network is wider and learns for 10 epochs per batch; this is quicker to watch.
SETTINGS = {"epochs": 5, "width": 16, "lr": 0.02}

folder = Path(tempfile.mkdtemp())
model, file = hazy_digits(folder)
images = np.load(file)
labels = load_digits(seed=0).test_labels
box = load_box(model)

stream = Stream(box, method="soda-o", seed=0, **SETTINGS)
for number in range(BATCHES):
    place = slice(number * BATCH, (number + 1) * BATCH)
    answers = stream(images[place])
    stream.save(folder / "stream.safetensors")
    stream = Stream.load(folder / "stream.safetensors", box)  # as after a restart
    accuracy = (answers.argmax(axis=1) == labels[place]).mean()
    spent = stream.ledger.total / stream.images
    print(f"batch {number + 1}: accuracy {accuracy:.1%}, {spent:.0f} queries per image so far")
