"""Convention, adaptor and model as one ONNX graph, or as one graph each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from soda_tta.adaptors import PLAIN, Adaptor, Answering
from soda_tta.adaptors.answering_graph import answers_of, views_of
from soda_tta.box import Box, Input, OnnxBox
from soda_tta.box.backends.onnx_runtime import ELEMENT_TYPES
from soda_tta.box.facts import OUTPUT_FACTS, OutputFacts
from soda_tta.box.onnx_input import plain_images, prepared, probabilities, shrunk
from soda_tta.errors import BoxError, SodaError
from soda_tta.protocols.onnx_files import METADATA_KEY, external_files
from soda_tta.protocols.onnx_graphs import (
    NEWEST_EXPORTED,
    OLDEST_OPSET,
    PREFIX,
    GraphBuilder,
    answers,
    at_opset,
    enclose,
    names_in,
    opset_of,
    rename,
    tensor_info,
)
from soda_tta.types import Array

IMAGES = "images"  # the input of what is deployed
PROBABILITIES = "probabilities"  # and its output
ADAPTOR_KEY = "soda_tta.adaptor"  # in the metadata of a file: what its adaptor does
# What a deployed file can take: its facts as a model, and its shape without the batch.
TAKES = {
    "uint8": Input(dtype="uint8", layout="NHWC"),
    "float": Input(),
}
SIDES = ["image_height", "image_width"]


@dataclass(frozen=True)
class AdaptedGraph:
    """The parts of a deployed file: build them with `adapted_graph`.

    Parameters
    ----------
    box : OnnxBox
        The model, with the facts about its input and output.
    model : onnx.ModelProto
        The same, to be copied into the file.
    adaptor : onnx.ModelProto
        The adaptor, with the operators of the same version.
    adaptor_deviation : float
        Its largest difference from PyTorch, in pixels of [0, 1].
    takes : {"uint8", "float"}
        What the file takes: bytes NHWC, or float32 NCHW in [0, 1]; both RGB.
    shrink : bool
        Resize images with more pixels than the model takes in front of the adaptor.
    description : str
        What the adaptor does, for the metadata.
    answering : Answering
        Further views, and class weights.
    """

    box: OnnxBox
    model: Any
    adaptor: Any
    adaptor_deviation: float
    takes: str
    shrink: bool
    description: str
    answering: Answering = PLAIN

    @property
    def batch(self) -> Any:
        """The first extent of every tensor: a number if the model fixes it, otherwise a name."""
        extent = self.box.session.get_inputs()[0].shape[0]
        return extent if self.box.fixed_batch else extent or "n"

    @property
    def image_shape(self) -> list[Any]:
        """The shape of what the file takes."""
        if self.takes == "uint8":
            return [self.batch, *SIDES, 3]
        return [self.batch, 3, *SIDES]

    @property
    def image_info(self) -> Any:
        """The description of what the file takes."""
        return tensor_info(IMAGES, TAKES[self.takes].dtype, self.image_shape)

    def front(self, target: str) -> GraphBuilder:
        """Nodes that make the model's input, of this name, from images."""
        graph = GraphBuilder(opset_of(self.model), f"{PREFIX}/front")
        images = plain_images(graph, IMAGES, self.takes)
        if self.shrink:
            images = shrunk(graph, images, self.box.input.view)
        images = views_of(graph, graph.include(self.adaptor, images), self.answering)
        graph.name_it(prepared(graph, images, self.box.input), target)
        return graph

    def back(self, scores: str) -> GraphBuilder:
        """Nodes that make probabilities from the model's output, of this name."""
        graph = GraphBuilder(opset_of(self.model), f"{PREFIX}/back")
        facts = OutputFacts(**{name: getattr(self.box, name) for name in OUTPUT_FACTS})
        rows = probabilities(graph, scores, facts, is_matrix=self.scores_are_matrix)
        graph.name_it(answers_of(graph, rows, self.answering), PROBABILITIES)
        return graph

    @property
    def scores_output(self) -> Any:
        """The model's output with the class scores, as ONNX Runtime describes it."""
        outputs = {each.name: each for each in self.box.session.get_outputs()}
        return outputs[self.box.output_name]

    @property
    def scores_dtype(self) -> str:
        """The element type of that output."""
        return ELEMENT_TYPES[self.scores_output.type]

    @property
    def scores_are_matrix(self) -> bool:
        """Whether that output is float32 of shape (images, classes)."""
        return self.scores_dtype == "float32" and len(self.scores_output.shape) == 2

    @property
    def returns_probabilities(self) -> bool:
        """Whether the model itself returns what the file returns."""
        changed = self.box.logits or (self.box.background and not self.box.partial)
        changed = changed or not self.answering.is_plain
        return self.scores_are_matrix and not changed

    @property
    def output_shape(self) -> list[Any]:
        """The shape of what the file returns."""
        classes = self.scores_output.shape[1]
        if isinstance(classes, int) and self.box.background and not self.box.partial:
            classes -= 1
        return [self.batch, classes]

    @property
    def output_info(self) -> Any:
        """The description of what the file returns."""
        return tensor_info(PROBABILITIES, "float32", self.output_shape)

    def merged(self) -> Any:
        """One model from images to probabilities."""
        whole = type(self.model)()
        whole.CopyFrom(self.model)
        inside = {name: name for name in (self.box.input_name, self.box.output_name)}
        for name in {IMAGES, PROBABILITIES} & names_in(whole.graph):
            inside[name] = f"{PREFIX}/model/{name}"  # the name is that of the whole file now
            rename(whole.graph, name, inside[name])
        taken = inside[self.box.input_name]
        enclose(self.front(taken), whole, self.back(inside[self.box.output_name]))
        others = [each for each in whole.graph.input if each.name != taken]
        del whole.graph.input[:]
        del whole.graph.output[:]
        whole.graph.input.extend([self.image_info, *others])  # initializers, in old files
        whole.graph.output.append(self.output_info)
        self._describe(whole)
        return whole

    def _describe(self, whole: Any) -> None:
        """State in the metadata that the file takes plain images and returns probabilities."""
        import onnx

        metadata = {each.key: each.value for each in self.model.metadata_props}
        metadata[METADATA_KEY] = json.dumps({**TAKES[self.takes].card(), **self.output_facts})
        metadata[ADAPTOR_KEY] = self.description
        onnx.helper.set_model_props(whole, metadata)

    @property
    def output_facts(self) -> dict[str, bool]:
        """Facts about the output of the file: what is not partial is complete probabilities."""
        partial = self.box.partial
        return {
            "logits": False,
            "partial": partial,
            "background": partial and self.box.background,
        }

    def front_model(self) -> Any:
        """The part in front of the model as a file of its own."""
        (image,) = self.box.session.get_inputs()
        name = image.name if image.name != IMAGES else f"{IMAGES}_prepared"
        tensor = tensor_info(name, self.box.input.dtype, list(image.shape))
        return self.front(name).as_model([self.image_info], [tensor])

    def back_model(self) -> Any:
        """The part behind the model as a file of its own."""
        scores = self.scores_output
        name = scores.name if scores.name != PROBABILITIES else f"{PROBABILITIES}_of_model"
        tensor = tensor_info(name, self.scores_dtype, list(scores.shape))
        return self.back(name).as_model([tensor], [self.output_info])

    def model_input(self, images: Array) -> Array:
        """What reaches the model, of images of this package (float32 NCHW in [0, 1])."""
        return answers(self.front_model(), TAKES[self.takes].prepare(images))

    def in_two_steps(self, images: Array) -> Array:
        """The answers of the box to images that the adaptor has changed before."""
        return self.answering.received(self.box(self.adapted(images)))

    def adapted(self, images: Array) -> Array:
        """All views of images changed by the adaptor, at the size that it works at."""
        view = self.box.input.view
        if self.shrink and view is not None and images[0, 0].size > np.prod(view.size):
            images = view(images)
        return self.answering.sent(np.clip(answers(self.adaptor, images), 0, 1))


class InThreeSteps(Box):
    """The parts of a deployed file as a file each, one after the other."""

    def __init__(self, graph: AdaptedGraph) -> None:
        self.graph = graph
        self.batch = graph.box.batch
        self.fixed_batch = graph.box.fixed_batch
        self.partial = graph.output_facts["partial"]
        self.background = graph.output_facts["background"]

    def answer(self, images: Array) -> Array:
        """What the last part returns."""
        box = self.graph.box
        tensor = self.graph.model_input(images)
        (scores,) = box.session.run([box.output_name], {box.input_name: tensor})
        return answers(self.graph.back_model(), scores)


def adapted_graph(
    adaptor: Adaptor, box: OnnxBox, takes: str, *, shrink: bool = True
) -> AdaptedGraph:
    """Read the model of a box, and export the adaptor with operators of the same version."""
    if takes not in TAKES:
        raise SodaError(f"a file cannot take {takes!r}; choose one of {', '.join(TAKES)}.")
    check_answering(adaptor, box)
    model = read_model(box.path)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "adaptor.onnx"
        deviation = adaptor.to_onnx(file, opset=min(opset_of(model), NEWEST_EXPORTED))
        exported = load(file)
    return AdaptedGraph(
        box=box,
        model=model,
        adaptor=at_opset(exported, opset_of(model)),
        adaptor_deviation=deviation,
        takes=takes,
        shrink=shrink,
        description="; ".join(filter(None, [adaptor.describe(), adaptor.answering.describe()])),
        answering=adaptor.answering,
    )


def check_answering(adaptor: Adaptor, box: OnnxBox) -> None:
    """Refuse answers that a graph around this model cannot give."""
    if adaptor.answering.views and box.fixed_batch:
        raise BoxError(
            f"{box.path} takes exactly {box.batch} images at a time, and the adaptor sends "
            f"{adaptor.answering.queries} views of each; export the model again with a batch of "
            "any size, or export with one view (views=1)."
        )
    if adaptor.answering.weights is not None and box.partial:
        raise BoxError(
            f"{box.path} returns only some of the probabilities, and class weights need all; use "
            "apply in front of it, which completes them."
        )


def read_model(path: Path) -> Any:
    """The model in an ONNX file, without weights that are in files next to it."""
    model = load(path)
    if any(each.key == ADAPTOR_KEY for each in model.metadata_props):
        raise BoxError(f"{path} already contains an adaptor; pass the file of the model alone.")
    if opset_of(model) >= OLDEST_OPSET:
        return model
    if external_files(path):
        raise BoxError(
            f"{path} has its weights in other files and operators of ONNX opset {opset_of(model)}; "
            "export it again with opset 17."
        )
    converted = at_opset(model, OLDEST_OPSET)
    del converted.metadata_props[:]
    converted.metadata_props.extend(model.metadata_props)
    return converted


def load(path: Path) -> Any:
    """An ONNX file, without weights that are in files next to it."""
    try:
        import onnx
    except ImportError as error:
        raise SodaError("writing ONNX files needs onnx: pip install 'soda-tta[onnx]'.") from error
    return onnx.load(str(path), load_external_data=False)
