"""Files to deploy: checked before they are kept, and nothing of the user's overwritten."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from soda_tta.adaptors import Adaptor, Bank, Identity
from soda_tta.box import load_box
from soda_tta.engine import adapted_graph
from soda_tta.engine.export import export_merged
from soda_tta.engine.triton import export_triton
from soda_tta.errors import BoxError, SodaError
from soda_tta.types import Array

ADAPTOR = Bank().adaptor({"contrast": 0.2, "red": 0.05})


def test_the_result_says_what_was_written_and_how_it_was_checked(
    tiny_onnx: Any, tmp_path: Path, images: Array
) -> None:
    model = tiny_onnx()
    steps: list[tuple[int, int]] = []
    done = export_merged(
        ADAPTOR,
        model,
        tmp_path / "adapted.onnx",
        takes="float",
        images=images,  # floats between two bytes
        progress=lambda *step: steps.append(step),
        mean=0.5,
    )
    assert done.shape == ["n", 3, "image_height", "image_width"]
    assert done.largest_deviation <= 1e-5 and done.adaptor_deviation <= 1e-5
    assert done.images_checked == 2 + 2 + 2 + 16  # three sizes, and the first of the user's
    assert steps == [(1, 3), (2, 3), (3, 3)]
    expected = load_box(model, mean=0.5)(ADAPTOR(images))
    answers = load_box(tmp_path / "adapted.onnx")(images)
    np.testing.assert_allclose(answers, expected, atol=1e-5)


def test_a_file_that_deviates_is_not_written(
    tiny_onnx: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = adapted_graph.prepared
    monkeypatch.setattr(
        adapted_graph,
        "prepared",
        lambda graph, images, facts: prepared(graph, images, replace(facts, mean=0.4)),
    )
    with pytest.raises(SodaError, match=r"deviates from adaptor and model by .* not written"):
        export_merged(Identity(), tiny_onnx(), tmp_path / "adapted.onnx", mean=0.5)
    assert not (tmp_path / "adapted.onnx").exists()
    with pytest.raises(SodaError, match="not written"):
        export_triton(Identity(), tiny_onnx(), tmp_path / "repository", mean=0.5)
    assert not (tmp_path / "repository").exists()


def test_weights_in_another_file_stay_next_to_the_model(
    tiny_onnx: Any, tmp_path: Path, images: Array
) -> None:
    content = onnx.load(tiny_onnx())
    images = np.rint(images * 255).astype(np.float32) / 255  # as files have them
    (tmp_path / "model").mkdir()
    model = tmp_path / "model" / "model.onnx"
    onnx.save(content, model, save_as_external_data=True, location="weights.bin", size_threshold=0)
    expected = load_box(model)(ADAPTOR(images))
    for target in (model.with_name("adapted.onnx"), tmp_path / "other" / "adapted.onnx"):
        export_merged(ADAPTOR, model, target)
        assert sorted(path.name for path in target.parent.iterdir() if path != model) == [
            "adapted.onnx",
            "weights.bin",
        ]
        np.testing.assert_allclose(load_box(target)(images), expected, atol=1e-5)
    export_triton(ADAPTOR, model, tmp_path / "repository")
    assert (tmp_path / "repository" / "model" / "1" / "weights.bin").exists()
    with pytest.raises(SodaError, match=r"weights\.bin already exists"):
        export_merged(ADAPTOR, model, tmp_path / "other" / "second.onnx")


def test_an_old_model_with_weights_elsewhere_is_refused(
    tiny_onnx: Any, tmp_path: Path, images: Array
) -> None:
    content = onnx.load(tiny_onnx())
    content.opset_import[0].version = 11
    model = tmp_path / "model.onnx"
    onnx.save(content, model, save_as_external_data=True, location="weights.bin", size_threshold=0)
    with pytest.raises(BoxError, match="opset 11; export it again with opset 17"):
        export_merged(ADAPTOR, model, tmp_path / "adapted.onnx")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("model.tflite", "tf2onnx.convert --tflite model.tflite"),
        ("https://host/v2/models/night", "pass the ONNX file that the server has"),
        ("model.pt", "is not an .onnx file; export the model to ONNX"),
        ("nothing.onnx", "nothing.onnx does not exist"),
    ],
)
def test_other_models_are_refused_with_the_remedy(tmp_path: Path, model: str, message: str) -> None:
    for export in (export_merged, export_triton):
        with pytest.raises(BoxError, match=message):
            export(ADAPTOR, model, tmp_path / "adapted.onnx")
    assert not list(tmp_path.iterdir())


def test_an_adaptor_that_onnx_cannot_express_is_an_error(
    tiny_onnx: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    class Sorting(torch.nn.Module):
        def forward(self, images: Any) -> Any:
            return torch.linalg.svd(images)[0]

    class NotExportable(Identity):
        kind = "not exportable"

        def as_module(self) -> Any:
            return Sorting()

    with pytest.raises(SodaError, match="Sorting could not be exported to ONNX"):
        export_merged(NotExportable(), tiny_onnx(), tmp_path / "adapted.onnx")
    assert capsys.readouterr().out == ""
    del Adaptor.kinds["not exportable"]


def test_the_model_itself_is_never_overwritten(tiny_onnx: Any) -> None:
    model = tiny_onnx()
    with pytest.raises(SodaError, match="is the model itself"):
        export_merged(ADAPTOR, model, model, force=True)


@pytest.mark.parametrize(
    ("file", "facts", "parts"),
    [
        ({}, {}, ["tiny1_adaptor", "tiny1"]),
        (
            {"outputs": ("logits",), "shape": (4, 8, 8, 3)},
            {"logits": True},
            ["tiny1_adaptor", "tiny1", "tiny1_probabilities"],
        ),
    ],
)
def test_triton_can_parse_the_repository(
    tiny_onnx: Any, tmp_path: Path, file: Any, facts: Any, parts: list[str]
) -> None:
    protobuf = pytest.importorskip("tritonclient.grpc.model_config_pb2")
    text_format = pytest.importorskip("google.protobuf.text_format")
    repository = tmp_path / "repository"
    done = export_triton(ADAPTOR, tiny_onnx(**file), repository, **facts)
    assert done.path == repository / "tiny1_adapted" and done.largest_deviation <= 1e-5
    configs = {
        path.parent.name: text_format.Parse(path.read_text(), protobuf.ModelConfig())
        for path in repository.glob("*/config.pbtxt")
    }
    assert sorted(configs) == sorted([*parts, "tiny1_adapted"])
    fixed = "shape" in file
    for name, config in configs.items():
        assert config.name == name
        assert config.max_batch_size == (0 if fixed else 64)
        assert (repository / name / "1").is_dir()
    ensemble = configs["tiny1_adapted"]
    assert list(ensemble.input[0].dims) == ([4, -1, -1, 3] if fixed else [-1, -1, 3])
    assert ensemble.input[0].data_type == protobuf.TYPE_UINT8
    steps = ensemble.ensemble_scheduling.step
    assert [step.model_name for step in steps] == parts
    check_wiring(ensemble, configs)


def check_wiring(ensemble: Any, configs: dict[str, Any]) -> None:
    """Every tensor of the ensemble has one type and one shape wherever it is used."""
    tensors = {each.name: each for each in ensemble.input}
    for step in ensemble.ensemble_scheduling.step:
        config = configs[step.model_name]
        for own in config.input:
            source = tensors[step.input_map[own.name]]
            assert (source.data_type, list(source.dims)) == (own.data_type, list(own.dims))
        tensors |= {step.output_map[own.name]: own for own in config.output}
    (result,) = ensemble.output
    made = tensors[result.name]
    assert (made.data_type, list(made.dims)) == (result.data_type, list(result.dims))


def test_models_of_a_repository_are_overwritten_only_by_force(
    tiny_onnx: Any, tmp_path: Path
) -> None:
    model = tiny_onnx()
    (tmp_path / "tiny1").mkdir()
    with pytest.raises(SodaError, match="tiny1 already exists"):
        export_triton(Identity(), model, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["tiny1"]
    (tmp_path / "other").mkdir()
    for _ in range(2):
        export_triton(Identity(), model, tmp_path, force=True)
    assert (tmp_path / "other").is_dir()
