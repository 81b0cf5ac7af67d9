"""The Coral models: the same bytes as the bare interpreter, and the accuracy they are known for."""

import csv

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from soda_tta import load_box
from soda_tta.data import open_images
from soda_tta.data.home import data_file

pytestmark = pytest.mark.real

COUNT = 200  # images
MODELS = {"mobilenet_v2_1.0_224_quant": 0.6, "tf2_mobilenet_v2_1.0_224_ptq": 0.6}


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    files = sorted(data_file("imagenet-val-2000/images").iterdir())[:COUNT]
    return np.concatenate([open_images(str(file))[:1] for file in files])


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    with data_file("imagenet-val-2000/labels.csv").open() as file:
        rows = sorted((row["file"], int(row["label"])) for row in csv.DictReader(file))
    return np.array([label for _, label in rows[:COUNT]])


@pytest.mark.parametrize(("model", "least"), MODELS.items(), ids=MODELS)
def test_a_coral_model(model: str, least: float, images, labels) -> None:
    path = data_file(f"models/coral/{model}.tflite")
    box = load_box(path)
    assert box.partial and box.quantum == 1 / 255 and box.input.dtype == "uint8"
    assert len(box.class_names) == 1001 and box.class_names[0] == "background"
    rows = box(images)
    assert np.mean(rows.argmax(axis=1) == labels + 1) > least  # class 0 is the background

    interpreter = Interpreter(model_path=str(path))
    interpreter.allocate_tensors()
    for image, row in zip(images[:10], rows, strict=False):
        pixels = np.rint(image * 255).astype(np.uint8).transpose(1, 2, 0)
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], pixels[None])
        interpreter.invoke()
        scores = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0]
        if scores.sum() <= 256:
            kept = scores > 0
            np.testing.assert_allclose(row[kept], scores[kept] / 256, atol=1e-6)
