"""Write what a run has learned as files to deploy: one ONNX file, checked before it is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.box import OnnxBox, load_box
from soda_tta.box.like import load_box_like
from soda_tta.data import open_images
from soda_tta.data.resizing import size_text
from soda_tta.engine.adapted_graph import IMAGES, PROBABILITIES, AdaptedGraph, adapted_graph
from soda_tta.engine.saved import SavedAdaptor, load_adaptor
from soda_tta.errors import BoxError, SodaError
from soda_tta.protocols.onnx_files import TOLERANCE, external_files
from soda_tta.protocols.onnx_graphs import answers
from soda_tta.storage.atomic import replacing
from soda_tta.types import Array

USUAL_SIZE = (64, 48)  # of the images to check with, in front of a model that takes any size
MOST_CHECKED = 16  # of the user's own images
STEPS = 3  # of an export, for its progress

Progress = Callable[[int, int], None]  # receives the steps that are done, and all of them


def not_shown(done: int, total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Exported:
    """What was written, and how it was checked.

    Parameters
    ----------
    path : the ONNX file, or the folder of a Triton model repository.
    takes : "uint8" or "float".
    shape : of the input `images`; texts stand for any extent.
    largest_deviation : between the probabilities of what was written and those of the box behind
        the adaptor; at most 1e-5.
    adaptor_deviation : between the adaptor in ONNX and in PyTorch, in pixels of [0, 1].
    images_checked : how many images these were measured on.
    learned_at_size : height and width of the images of the run; None if not known.
    notices : what the user should know.
    """

    path: Path
    takes: str
    shape: list[Any]
    largest_deviation: float
    adaptor_deviation: float
    images_checked: int
    learned_at_size: list[int] | None = None
    notices: list[str] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return {
            "path": str(self.path),
            "takes": self.takes,
            "input": {"name": IMAGES, "shape": self.shape},
            "output": {"name": PROBABILITIES},
            "largest_deviation": self.largest_deviation,
            "adaptor_deviation": self.adaptor_deviation,
            "images_checked": self.images_checked,
            "learned_at_size": self.learned_at_size,
            "notices": self.notices,
        }


def export_merged(
    adaptor: Any,
    model: str | Path,
    path: str | Path,
    *,
    takes: str = "uint8",
    images: Any = None,
    force: bool = False,
    progress: Progress = not_shown,
    **facts: Any,
) -> Exported:
    """Write one ONNX file: what the model expects of images, the adaptor and the model.

    The file takes plain images in `images` and returns `probabilities`. It is compared in ONNX
    Runtime with the two steps that it replaces, the adaptor and then the box, and is written only
    if no probability deviates by more than 1e-5.

    Parameters
    ----------
    adaptor : an Adaptor, a Run, a run folder, or an adaptor.safetensors.
    model : the ONNX file of the model.
    path : the file to write.
    takes : "uint8" for bytes NHWC, as cameras and decoders give them, or "float" for float32 NCHW
        in [0, 1]; both RGB, of any size. Default: "uint8".
    images : images to check with, besides random ones; whatever `adapt` takes. Default: none.
    force : overwrite `path` if it exists.
    progress : called with the steps done and their number.
    facts : facts about the model, as `load_box` takes them. Default: those of the run.

    Examples
    --------
    >>> export_merged("runs/night", "model.onnx", "adapted.onnx")  # doctest: +SKIP
    >>> load_box("adapted.onnx")(frames)  # needs no further facts  # doctest: +SKIP
    """
    target = Path(path)
    if target.suffix.lower() != ".onnx":
        raise SodaError(f"{target} does not end in .onnx; write {target.with_suffix('.onnx')}.")
    refuse_existing(target, force)
    if target.exists() and Path(model).exists() and target.samefile(model):
        raise SodaError(f"{target} is the model itself; choose another file to write.")
    saved, graph, notices = parts_of(adaptor, model, takes, facts)
    progress(1, STEPS)
    with with_weights(graph.box.path, target, force=force), replacing(target) as temporary:
        write_model(graph.merged(), temporary)
        progress(2, STEPS)
        merged = OnnxBox(temporary, batch=graph.box.batch)
        pictures = list(pictures_for(saved, graph, images))
        deviation = largest_deviation(graph, merged, pictures)
        progress(3, STEPS)
    return exported(target, saved, graph, deviation, pictures, notices)


def exported(
    path: Path,
    saved: SavedAdaptor,
    graph: AdaptedGraph,
    deviation: float,
    pictures: list[Array],
    notices: list[str],
) -> Exported:
    """The result of an export."""
    learned = None if saved.card is None else list(saved.card.images["size"])
    return Exported(
        path=path,
        takes=graph.takes,
        shape=graph.image_shape,
        largest_deviation=deviation,
        adaptor_deviation=graph.adaptor_deviation,
        images_checked=sum(len(batch) for batch in pictures),
        learned_at_size=learned,
        notices=notices,
    )


def refuse_existing(path: Path, force: bool) -> None:
    """Refuse to overwrite a file or a folder of the user."""
    if path.exists() and not force:
        raise SodaError(f"{path} already exists. Choose another name, or pass force=True.")


def parts_of(
    adaptor: Any, model: str | Path, takes: str, facts: dict[str, Any]
) -> tuple[SavedAdaptor, AdaptedGraph, list[str]]:
    """The saved adaptor, the graph to deploy, and notices for the user."""
    refuse_other_kinds(str(model))
    saved = load_adaptor(adaptor)
    notices = list(saved.notices)
    if saved.card is None:
        box = load_box(model, **facts)
    else:
        box, notice = load_box_like(saved.card.box, model, **facts)
        notices += [] if notice is None else [notice]
    assert isinstance(box, OnnxBox)
    graph = adapted_graph(saved.adaptor, box, takes, shrink=works_at_model_size(saved, box))
    return saved, graph, notices


def refuse_other_kinds(model: str) -> None:
    """Refuse a model that is not an ONNX file, with what to do instead."""
    alone = "run the adaptor alone in front of it (export it without a model)"
    if "://" in model:
        raise BoxError(
            f"{model} is an address, and only a file can become part of a file; pass the ONNX file "
            f"that the server has, or {alone}."
        )
    if model.endswith(".tflite"):
        raise BoxError(
            f"{model} is a TFLite file; convert it to ONNX (python -m tf2onnx.convert --tflite "
            f"{model} --output model.onnx), or {alone}."
        )
    if not model.endswith(".onnx"):
        raise BoxError(f"{model} is not an .onnx file; export the model to ONNX, or {alone}.")


def works_at_model_size(saved: SavedAdaptor, box: OnnxBox) -> bool:
    """Whether images larger than the model takes are resized in front of the adaptor.

    They are, unless the run itself worked on larger images, which it was given with a size.
    """
    view = box.input.view
    if saved.card is None or view is None:
        return True
    return bool(np.prod(saved.card.images["size"]) <= np.prod(view.size))


@contextmanager
def with_weights(model: Path, target: Path, *, force: bool) -> Iterator[None]:
    """Copy the files that hold the weights of a model next to `target`, if it is elsewhere."""
    copied = []
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        for file in external_files(model):
            place = target.parent / file.relative_to(model.parent)
            if place.exists() and place.samefile(file):
                continue
            refuse_existing(place, force)
            place.parent.mkdir(parents=True, exist_ok=True)
            copied.append(place)
            shutil.copyfile(file, place)
        yield
    except BaseException:
        for place in copied:
            place.unlink(missing_ok=True)
        raise


def write_model(model: Any, path: Path) -> None:
    """Write a model that has been put together here."""
    import onnx

    try:
        onnx.save(model, str(path))
    except ValueError as error:  # protobuf refuses more than 2 GB
        raise SodaError(
            "the model is larger than an ONNX file can be (2 GB); export it with its weights in a "
            "file next to it (external data)."
        ) from error


def pictures_for(saved: SavedAdaptor, graph: AdaptedGraph, images: Any) -> Iterator[Array]:
    """Batches of images to check with: random ones of several sizes, and the user's own."""
    view = graph.box.input.view
    learned = None if saved.card is None else saved.card.images["size"]
    height, width = view.size if view is not None else learned or USUAL_SIZE
    count = graph.box.batch if graph.box.fixed_batch else 2
    yield random_pictures(count, (height, width))
    if view is not None:
        yield random_pictures(count, (height + height // 2, 2 * width + 1))
        yield random_pictures(count, (height - height // 8, width))
    if images is not None:
        own = open_images(images)[slice(0, MOST_CHECKED)]
        # floats between two bytes do not fit into a file that takes bytes
        yield np.rint(own * 255).astype(np.float32) / 255 if graph.takes == "uint8" else own


def random_pictures(count: int, size: tuple[int, int]) -> Array:
    """Images of noise and of coloured squares, in steps of 1/255."""
    generator = np.random.default_rng(0)
    noise = generator.integers(0, 256, (count, 3, *size))
    squares = generator.integers(0, 256, (count, 3, -(-size[0] // 4), -(-size[1] // 4)))
    squares = squares.repeat(4, axis=2).repeat(4, axis=3)[:, :, : size[0], : size[1]]
    noise[::2] = squares[::2]
    pictures: Array = noise.astype(np.float32) / 255
    return pictures


def largest_deviation(
    graph: AdaptedGraph, deployed: Callable[[Array], Array], pictures: list[Array]
) -> float:
    """The largest difference between what is deployed and the two steps that it replaces."""
    largest = 0.0
    for batch in pictures:
        if is_rounded_after_resizing(graph, batch):
            check_bytes(graph, batch)
            continue
        difference = np.abs(deployed(batch) - graph.in_two_steps(batch))
        largest = max(largest, float(difference.max()))
    if not largest <= TOLERANCE:
        raise SodaError(
            f"the exported ONNX file deviates from adaptor and model by {largest:.2g} in a "
            "probability; it was not written. Run them one after the other (apply) instead, and "
            "please report this."
        )
    return largest


def is_rounded_after_resizing(graph: AdaptedGraph, images: Array) -> bool:
    """Whether the model takes bytes, and these images are resized before they become bytes."""
    view = graph.box.input.view
    rounded = graph.box.input.quantum is not None
    return rounded and view is not None and images.shape[2:] != view.size


def check_bytes(graph: AdaptedGraph, images: Array) -> None:
    """Compare the bytes for the model: resized pixels differ by 1e-7, so some round otherwise."""
    count = len(images)
    if graph.box.fixed_batch and count < graph.box.batch:
        images = np.concatenate([images, np.repeat(images[-1:], graph.box.batch - count, axis=0)])
    sent = answers(graph.front_model(), graph.as_taken(images))
    expected = graph.box.input.prepare(graph.adapted(images))
    if np.abs(sent.astype(int) - expected).max() > 1:
        size = size_text(images.shape[2:])
        raise SodaError(f"images of {size} reach the model as other bytes; it was not written.")
