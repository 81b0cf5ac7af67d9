"""`apply_archive`: a learned adaptor on an archive of any size, as Parquet, shard by shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from soda_tta.data.archives.parquet import arrow
from soda_tta.data.archives.places import Place
from soda_tta.data.archives.shards import find_archive
from soda_tta.data.colours import colour_of
from soda_tta.data.reading import Reading
from soda_tta.data.resizing import Resize, check_size
from soda_tta.engine.apply import deployed_model, warn
from soda_tta.engine.events import Listener, Notice
from soda_tta.engine.saved import load_adaptor
from soda_tta.errors import ImageError, SodaError
from soda_tta.scale.backend import Backend, Here
from soda_tta.scale.driver import Job, Progress, answer_all
from soda_tta.scale.manifest import (
    MANIFEST,
    Found,
    Summary,
    check_free,
    check_same,
    manifest_of,
    write_json,
    write_shards,
)
from soda_tta.storage.atomic import make_folder
from soda_tta.storage.locks import locked

SHARD_SIZE = 5000  # images: seconds with a small model, minutes with a large one


def apply_archive(
    adaptor: Any,
    images: str | Path,
    box: Any,
    out: str | Path,
    *,
    resume: bool = False,
    size: int | tuple[int, int] | None = None,
    over: str | Sequence[int] = "white",
    all_probabilities: bool = False,
    shard_size: int = SHARD_SIZE,
    backend: Backend | None = None,
    stop: Callable[[], bool] = lambda: False,
    listener: Listener | None = None,
    progress: Progress = lambda done, total: None,
    **options: Any,
) -> Summary:
    """Answer every image of an archive once, and write the answers as Parquet files.

    There is one row per image: name, class, confidence, condition and distance (null unless the
    adaptor has conditions), and error. An image that cannot be read is a row with an error. Each
    shard is one file, which is written whole; `resume=True` continues with the other shards.

    Parameters
    ----------
    adaptor : an Adaptor, a Run, a run folder, or an adaptor.safetensors.
    images : a path or an address (s3://, gs://, az://, https:// ...) of a folder; of a CSV or
        Parquet table of paths; of a Parquet file with the bytes of images; or of tar files. `*`
        and `{000..099}` stand for several files.
    box : the model, as `apply` takes it. Workers in other processes load it themselves, so that
        a file must have the same path there.
    out : the folder to write, a path or an address.
    resume : continue answers that were interrupted. Finished shards are not answered again.
    size : resize and crop every image to this height and width in pixels. Default: the model's
        size, without a crop, for images that are larger.
    over : the colour under transparent pixels.
    all_probabilities : also write the probabilities of all classes.
    shard_size : images per shard (default 5000), for image files. A tar file is one shard, and so
        is a row group of a Parquet file with bytes.
    backend : where the shards are answered, from `find_backend` (default: in this process, with
        all its threads).
    stop : called between batches or shards; what is finished is kept for `resume=True`.
    listener : receives notices; without one they are warnings.
    progress : receives the number of finished shards and of all shards.
    options : facts about the model, as `load_box` takes them.

    Examples
    --------
    >>> import numpy as np, io
    >>> from PIL import Image
    >>> from soda_tta.adaptors import Identity
    >>> from soda_tta.data.archives.places import Place
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (8, 8)).save(file, "png")
    >>> Place("memory://doctest-photos").write("1.png", file.getvalue())
    >>> model = lambda images: np.full((len(images), 2), 0.5)
    >>> apply_archive(Identity(), "memory://doctest-photos", model, "memory://doctest-answers")
    Summary(shards=1, finished=1, images=1, errors=0, queries=1, complete=True)
    """
    arrow()  # a missing package is named before anything is loaded
    saved = load_adaptor(adaptor)
    tell = listener or warn
    deployed = deployed_model(saved, box, options, tell)
    for text in saved.notices:
        tell(Notice(text))
    place = Place(str(out))
    place.check_writable()
    source = str(images)
    wanted = None if size is None else check_size(size)
    reading = Reading(Resize(wanted), colour_of(over))
    facts = manifest_of(saved.adaptor, deployed, source, reading, all_probabilities, shard_size)
    engine = backend or Here()
    in_process = isinstance(engine, Here)
    if "memory" in place.protocols and not in_process:
        raise SodaError(f"{place} is the memory of one process; choose another out=.")
    with locked_place(place):
        if resume:
            found = continue_in(place, facts, tell)
        else:
            found = begin_in(place, facts, source, shard_size)
        if found.is_imagenet:  # as every command reads such folders
            view = Resize.imagenet() if wanted is None else Resize.imagenet(wanted)
            reading = replace(reading, resize=view)
        job = Job(
            saved=saved,
            model=deployed if in_process else portable(box),
            options={} if in_process else options,
            fingerprint=deployed.fingerprint(),
            reading=reading,
            all_probabilities=all_probabilities,
            out=place.absolute,
            shares_cores=engine.shares_cores,
            is_large=found.is_large,
        )
        return answer_all(job, engine, place, stop, progress)


def begin_in(place: Place, facts: dict[str, Any], source: str, shard_size: int) -> Found:
    """List the shards and write the manifest."""
    check_free(place)
    archive = find_archive(source, shard_size)
    count, images = write_shards(place, archive.shards)
    if not count:
        raise ImageError(f"{source} holds no image.")
    found = Found(archive.is_imagenet, count, images)
    write_json(place, MANIFEST, {**facts, "found": found.facts()})
    return found


def continue_in(place: Place, facts: dict[str, Any], tell: Listener) -> Found:
    """Check that these answers can be continued."""
    stored = check_same(place, facts)
    if stored.other_versions:
        tell(Notice(f"the first shards were answered with {', '.join(stored.other_versions)}."))
    return stored.found


def portable(model: Any) -> Any:
    """A model as workers can load it: the path of a file does not depend on their folder."""
    if not isinstance(model, str | Path):
        return model
    return str(Path(model).resolve()) if Path(model).is_file() else str(model)


@contextmanager
def locked_place(place: Place) -> Iterator[None]:
    """Keep other processes of this machine from writing to the same folder."""
    if place.local is None:
        yield
        return
    created = make_folder(place.local)
    message = f"another process is writing to {place}; wait for it, or choose another out=."
    try:
        with locked(place.local, message):
            yield
    finally:
        if created:
            with suppress(OSError):  # it holds something, as it should
                place.local.rmdir()
