"""The repository that `export --triton` writes, unchanged in a real Triton.

Loaded for real: the configurations, the ensemble scheduler and the ONNX files. Not loaded: Triton's
own back end `onnxruntime`, which is in no package; see servers/triton_repository.py.
"""

from pathlib import Path

import numpy as np
import onnx
import pytest

from soda_tta.adaptors import Bank
from soda_tta.box import load_box
from soda_tta.engine.triton import export_triton

from .conftest import serving

pytestmark = pytest.mark.peers

ADAPTOR = Bank().adaptor({"median": 0.5, "contrast": 0.2, "red": 0.05})
FACTS = {"channels": "BGR", "mean": (0.4, 0.5, 0.6), "std": 0.25, "logits": True}


def without_softmax(path: Path, target: Path) -> Path:
    """The same model, which returns logits."""
    model = onnx.load(path)
    (output,) = model.graph.output
    output.name = "logits"
    del model.graph.node[-1]
    onnx.save(model, target)
    return target


def test_the_ensembles_answer_what_adaptor_and_box_answer(
    small_model: Path, tmp_path: Path
) -> None:
    names = {"uint8": "digits", "float": "digits_as_floats"}
    for takes, name in names.items():
        model = without_softmax(small_model, tmp_path / f"{name}.onnx")
        export_triton(ADAPTOR, model, tmp_path / "repository", takes=takes, **FACTS)
    random = np.random.default_rng(0)
    box = load_box(tmp_path / "digits.onnx", **FACTS)
    server = tmp_path / "server"
    server.mkdir()
    with serving("triton", "triton_repository.py", tmp_path / "repository", server) as peer:
        for name in names.values():
            ensemble = load_box(f"{peer.http.removesuffix('digits')}{name}_adapted")
            for size in [(16, 16), (40, 31)]:
                images = random.integers(0, 256, (70, 3, *size)).astype(np.float32) / 255
                expected = box(ADAPTOR(box.input.view(images)))
                np.testing.assert_allclose(ensemble(images), expected, atol=1e-5)
