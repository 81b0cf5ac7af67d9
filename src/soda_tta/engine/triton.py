"""Write what a run has learned as a model repository of Triton Inference Server."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from soda_tta.engine.adapted_graph import IMAGES, PROBABILITIES, TAKES, AdaptedGraph, InThreeSteps
from soda_tta.engine.export import (
    STEPS,
    Exported,
    Progress,
    exported,
    not_shown,
    parts_of,
    refuse_existing,
    with_weights,
    write_model,
)
from soda_tta.engine.export_check import largest_deviation, pictures_for
from soda_tta.errors import SodaError
from soda_tta.protocols.triton_config import Step, Tensor, ensemble_config, model_config
from soda_tta.storage.atomic import make_folder, replacing, write_text

CONFIG = "config.pbtxt"
FILE = "model.onnx"  # as Triton expects it
VERSION = "1"
BETWEEN = ("prepared", "scores")  # tensors between the models of the ensemble


def export_triton(
    adaptor: Any,
    model: str | Path,
    folder: str | Path,
    *,
    takes: str = "uint8",
    images: Any = None,
    views: int | None = None,
    force: bool = False,
    progress: Progress = not_shown,
    **facts: Any,
) -> Exported:
    """Write an ensemble for Triton: images to the model's input, the model, probabilities.

    For `resnet.onnx` the repository gets the models `resnet_adaptor`, `resnet`, if the model does
    not return probabilities itself `resnet_probabilities`, and the ensemble `resnet_adapted`, which
    is the one to query. All are ONNX files, so no Python runs in the server. Other models in the
    folder stay as they are.

    Parameters
    ----------
    adaptor : an Adaptor, a Run, a run folder, or an adaptor.safetensors.
    model : the ONNX file of the model.
    folder : the model repository; it is created if it does not exist.
    takes, images, views, facts : see `export_merged`.
    force : overwrite models of these names in the folder.
    progress : called with the steps done and their number.
    """
    repository = Path(folder)
    names = Names(re.sub(r"\W+", "_", Path(model).stem))
    for name in names.all():
        refuse_existing(repository / name, force)
    saved, graph, notices = parts_of(adaptor, model, takes, facts, views)
    if graph.answering.views:
        raise SodaError(
            "an ensemble of Triton cannot send several views of an image: its models share one "
            "batch size; export one file (--merge without --triton), or one view (views=1)."
        )
    progress(1, STEPS)
    pictures = list(pictures_for(graph, saved.size, images))
    deviation, amplified = largest_deviation(graph, InThreeSteps(graph), pictures)
    progress(2, STEPS)
    write_repository(repository, names, graph, force=force)
    progress(3, STEPS)
    return exported(
        repository / names.ensemble, saved, graph, deviation, pictures, notices + amplified
    )


@dataclass(frozen=True)
class Names:
    """The names of the models in the repository."""

    model: str

    @property
    def front(self) -> str:
        """In front of the model."""
        return f"{self.model}_adaptor"

    @property
    def back(self) -> str:
        """Behind the model, if it does not return probabilities itself."""
        return f"{self.model}_probabilities"

    @property
    def ensemble(self) -> str:
        """All of them: the one to query."""
        return f"{self.model}_adapted"

    def all(self) -> list[str]:
        """All names."""
        return [self.front, self.model, self.back, self.ensemble]


@dataclass(frozen=True)
class Part:
    """One model of the ensemble, with its input and output; None stands for the user's own file."""

    name: str
    model: Any
    source: Tensor
    result: Tensor


def parts_in_order(graph: AdaptedGraph, names: Names) -> list[Part]:
    """The models of the ensemble, in the order in which they run."""
    box = graph.box
    (image,), output = box.session.get_inputs(), graph.scores_output
    images = Tensor(IMAGES, TAKES[graph.takes].dtype, graph.image_shape)
    prepared = Tensor(box.input_name, box.input.dtype, image.shape)
    scores = Tensor(output.name, graph.scores_dtype, output.shape)
    front = graph.front_model()
    made = replace(prepared, name=front.graph.output[0].name)
    parts = [Part(names.front, front, images, made), Part(names.model, None, prepared, scores)]
    if not graph.returns_probabilities:
        back = graph.back_model()
        taken = replace(scores, name=back.graph.input[0].name)
        result = Tensor(PROBABILITIES, "float32", graph.output_shape)
        parts.append(Part(names.back, back, taken, result))
    return parts


def write_repository(repository: Path, names: Names, graph: AdaptedGraph, *, force: bool) -> None:
    """Write the models of an ensemble, and last the ensemble itself."""
    batch = None if graph.box.fixed_batch else graph.box.batch
    parts = parts_in_order(graph, names)
    between = [IMAGES, *BETWEEN[: len(parts) - 1], PROBABILITIES]  # tensors of the ensemble
    steps = []
    for part, taken, returned in zip(parts, between, between[1:], strict=False):
        write_part(repository / part.name / VERSION / FILE, part, graph.box.path, force=force)
        config = model_config(part.name, part.source, part.result, batch)
        write_text(repository / part.name / CONFIG, config)
        steps.append(Step(part.name, {part.source.name: taken}, {part.result.name: returned}))
    source = parts[0].source
    result = replace(parts[-1].result, name=PROBABILITIES)
    config = ensemble_config(names.ensemble, source, result, batch, steps)
    make_folder(repository / names.ensemble / VERSION)  # Triton wants a version; it stays empty
    write_text(repository / names.ensemble / CONFIG, config)


def write_part(file: Path, part: Part, model: Path, *, force: bool) -> None:
    """Write one ONNX file; the model's own is copied, with the weights next to it."""
    if part.model is not None:
        with replacing(file) as temporary:
            write_model(part.model, temporary)
        return
    with with_weights(model, file, force=force), replacing(file) as temporary:
        shutil.copyfile(model, temporary)
