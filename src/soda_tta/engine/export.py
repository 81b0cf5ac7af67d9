"""Write what a run has learned as files to deploy: one ONNX file, checked before it is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.box import OnnxBox, load_box
from soda_tta.box.like import load_box_like
from soda_tta.engine.adapted_graph import IMAGES, PROBABILITIES, AdaptedGraph, adapted_graph
from soda_tta.engine.export_check import largest_deviation, pictures_for
from soda_tta.engine.saved import SavedAdaptor, load_adaptor
from soda_tta.errors import BoxError, SodaError
from soda_tta.protocols.onnx_files import external_files
from soda_tta.storage.atomic import replacing
from soda_tta.types import Array

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
    views: int | None = None,
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
    views : 1 leaves out the further views that the adaptor was learned with, so that the model is
        computed once per image. Default: as learned.
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
    saved, graph, notices = parts_of(adaptor, model, takes, facts, views)
    progress(1, STEPS)
    with with_weights(graph.box.path, target, force=force), replacing(target) as temporary:
        write_model(graph.merged(), temporary)
        progress(2, STEPS)
        merged = OnnxBox(temporary, batch=graph.box.batch)
        pictures = list(pictures_for(graph, saved.size, images))
        deviation, amplified = largest_deviation(graph, merged, pictures)
        progress(3, STEPS)
    return exported(target, saved, graph, deviation, pictures, [*notices, *amplified])


def exported(
    path: Path,
    saved: SavedAdaptor,
    graph: AdaptedGraph,
    deviation: float,
    pictures: list[Array],
    notices: list[str],
) -> Exported:
    """The result of an export."""
    return Exported(
        path=path,
        takes=graph.takes,
        shape=graph.image_shape,
        largest_deviation=deviation,
        adaptor_deviation=graph.adaptor_deviation,
        images_checked=sum(len(batch) for batch in pictures),
        learned_at_size=None if saved.size is None else list(saved.size),
        notices=notices,
    )


def refuse_existing(path: Path, force: bool) -> None:
    """Refuse to overwrite a file or a folder of the user."""
    if path.exists() and not force:
        raise SodaError(f"{path} already exists. Choose another name, or pass force=True.")


def parts_of(
    adaptor: Any,
    model: str | Path,
    takes: str,
    facts: dict[str, Any],
    views: int | None = None,
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
    learned = with_views(saved.adaptor, views)
    graph = adapted_graph(learned, box, takes, shrink=works_at_model_size(saved))
    return saved, graph, notices


def with_views(adaptor: Adaptor, views: int | None) -> Adaptor:
    """The adaptor with its own views, or only the first of them."""
    if views is None:
        return adaptor
    own = adaptor.answering
    if not 1 <= views <= own.queries:
        raise SodaError(
            f"views={views} is not valid: the adaptor was learned with {own.queries}; give 1 to "
            f"{own.queries}."
        )
    return adaptor.answered(replace(own, views=own.views[: views - 1]))


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


def works_at_model_size(saved: SavedAdaptor) -> bool:
    """Whether images larger than the model takes are resized in front of the adaptor.

    They are, unless the run itself worked on larger images than its model takes: these were opened
    with a size.
    """
    if saved.size is None or saved.view is None:
        return True
    return bool(np.prod(saved.size) <= np.prod(saved.view.size))


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
            copied += [] if place.exists() else [place]
            with replacing(place) as temporary:
                shutil.copyfile(file, temporary)
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
