"""One ONNX file in place of adaptor and model, on real networks and photographs."""

from pathlib import Path

import numpy as np
import pytest

from soda_tta import export_merged, load_box, zoo
from soda_tta.adaptors import Adaptor, Bank
from soda_tta.data import open_images

pytestmark = pytest.mark.real

TONE = Bank().adaptor({"contrast": 0.2, "gamma": 0.1, "red": 0.05})
# thresholds on coefficients: the smallest difference may change what is dropped
SHRINKAGE = Bank().adaptor({"cosine shrinkage 0.15": 0.5, "motion 1.5": 0.3})


@pytest.mark.parametrize(
    ("name", "adaptor"),
    [("imagenet_resnet50", TONE), ("imagenet_efficientnet_lite0", SHRINKAGE)],
)
def test_one_file_gives_what_adaptor_and_model_give(
    real_data: Path, tmp_path: Path, name: str, adaptor: Adaptor
) -> None:
    model = zoo.onnx_path(name)
    # 224 px, which is the model's size, and 227 px, which is resized
    photographs = [
        open_images(real_data / "imagenet-1000" / "images")[:8],
        open_images(real_data / "pacs" / "photo")[:8],
    ]
    done = export_merged(adaptor, model, tmp_path / "adapted.onnx", images=photographs[1])
    assert done.largest_deviation <= 1e-5
    box = load_box(model)
    merged = load_box(tmp_path / "adapted.onnx")
    for images in photographs:
        expected = box(adaptor(box.input.view(images)))
        np.testing.assert_allclose(merged(images), expected, atol=1e-5, rtol=0)
