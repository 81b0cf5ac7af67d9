"""The shards of an archive on an engine: which are missing, who answers them, what failed."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from soda_tta.adaptors import Adaptor
from soda_tta.adaptors.throughput import for_many
from soda_tta.box import Box
from soda_tta.data.archives.places import Place, is_address
from soda_tta.data.archives.shards import Shard
from soda_tta.data.reading import Reading
from soda_tta.engine.apply import deployed_model
from soda_tta.engine.saved import SavedAdaptor
from soda_tta.engine.work import Interrupted
from soda_tta.errors import (
    BoxError,
    BoxUnavailable,
    RunError,
    SodaError,
    StorageError,
)
from soda_tta.scale.ahead import decoding_threads
from soda_tta.scale.answer_file import count_rows
from soda_tta.scale.answering import Answered, Answering, answer_shard
from soda_tta.scale.backend import Backend, Failure, Here
from soda_tta.scale.manifest import Summary, part_name, read_shards, read_summary, write_summary
from soda_tta.storage.temporary import remove_left_over

ONE_THREAD = (".onnx", ".tflite")  # models that take threads=
SHOWN = 5  # failed shards that a message names
COUNTED_AT_ONCE = 16  # parts of earlier processes
OF_ONE_SHARD = ("ImageError", "MissingImage")
ERRORS = {each.__name__: each for each in (BoxError, BoxUnavailable, RunError, StorageError)}
KEPT = "Finished shards are kept; continue with resume=True."

Numbered = tuple[int, Shard]
Progress = Callable[[int, int], None]  # receives the finished shards and all shards


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a worker needs to answer any shard of an archive."""

    saved: SavedAdaptor
    model: Any
    options: dict[str, Any]
    fingerprint: str
    reading: Reading
    all_probabilities: bool
    out: str
    shares_cores: bool
    is_large: bool = False  # enough images that compiling the adaptor is worth its time
    key: str = field(default_factory=lambda: secrets.token_hex(8))


def answer_all(
    job: Job, engine: Backend, place: Place, stop: Callable[[], bool], progress: Progress
) -> Summary:
    """Answer the shards that have no file yet."""
    tally = Tally.of(place)
    failures: list[str] = []
    progress(tally.finished, tally.total)
    in_process = isinstance(engine, Here)
    function = partial(answer_task, job, stop=stop) if in_process else partial(answer_task, job)
    try:
        # Closed at the first error, even if something holds it: workers would go on querying.
        with closing(engine.run(function, missing_shards(place, stop))) as results:
            for (number, shard), result in results:
                if isinstance(result, Failure):
                    failures.append(failure_text(number, shard, result))
                else:
                    tally.add(result)
                    progress(tally.finished, tally.total)
    except Interrupted:
        pass
    finally:
        write_summary(place, tally.summary())
        if place.local is not None:
            remove_left_over(place.local)  # of workers that were killed
    if failures:
        raise ShardsFailed(failures, tally.total)
    return tally.summary()


def missing_shards(place: Place, stop: Callable[[], bool]) -> Iterator[Numbered]:
    """The shards without a file, until the caller asks to stop."""
    finished = place.names()
    for number, shard in read_shards(place):
        if stop():
            return
        if part_name(number) not in finished:
            yield number, shard


@dataclass
class Tally:
    """What is finished so far."""

    total: int
    finished: int
    images: int
    errors: int
    queries: int

    @staticmethod
    def of(place: Place) -> Tally:
        """What earlier processes have finished."""
        total = sum(1 for _ in read_shards(place))
        names = place.names()
        parts = [name for number in range(total) if (name := part_name(number)) in names]
        images, errors = rows_in(place, parts)
        queries = int(read_summary(place).get("queries", 0))
        return Tally(total, len(parts), images, errors, queries)

    def add(self, answered: Answered) -> None:
        """Count one more shard."""
        self.finished += 1
        self.images += answered.images
        self.errors += answered.errors
        self.queries += answered.queries

    def summary(self) -> Summary:
        """The same as a result."""
        is_complete = self.finished == self.total
        return Summary(
            self.total, self.finished, self.images, self.errors, self.queries, is_complete
        )


class ShardsFailed(RunError):
    """Some shards failed; the answers to the others are written.

    Parameters
    ----------
    failures : one message per failed shard, also available as an attribute.
    total : number of shards.
    """

    def __init__(self, failures: list[str], total: int) -> None:
        self.failures = failures
        lines = [
            f"{len(failures)} of {total} shards failed; the others are finished. "
            "Repair them, then continue with resume=True.",
            *(f"  {failure}" for failure in failures[:SHOWN]),
        ]
        if len(failures) > SHOWN:
            lines.append(f"  and {len(failures) - SHOWN} more")
        super().__init__("\n".join(lines))


def failure_text(number: int, shard: Shard, failure: Failure) -> str:
    """Why a shard failed. Raises what would fail every other shard in the same way."""
    if failure.kind in OF_ONE_SHARD:
        return f"shard {number} ({shard.place}): {failure.message}"
    kind = ERRORS.get(failure.kind)
    if kind is not None or failure.kind == SodaError.__name__:
        raise (kind or SodaError)(f"{failure.message}\n{KEPT}")
    raise RunError(f"shard {number} ({shard.place}) failed: {failure}. {KEPT}")


def answer_task(job: Job, numbered: Numbered, stop: Callable[[], bool] = lambda: False) -> Answered:
    """Answer one shard; runs in a worker."""
    number, shard = numbered
    return answer_shard(shard, answering_of(job, shard), Place(job.out), part_name(number), stop)


_loaded: dict[str, tuple[Adaptor, Box]] = {}  # of this process, by the key of their job
_loading = threading.Lock()  # a worker of Dask may have several threads


def answering_of(job: Job, shard: Shard) -> Answering:
    """How the shards of a job are answered; adaptor and model are loaded once per process."""
    with _loading:
        if job.key not in _loaded:
            _loaded.clear()  # those of an earlier job are no longer needed
            adaptor = job.saved.adaptor
            if job.is_large:
                adaptor = for_many(adaptor, 1 if job.shares_cores else os.cpu_count() or 1)
            _loaded[job.key] = (adaptor, load_model(job))
        adaptor, box = _loaded[job.key]
    is_remote = is_address(shard.place) or any(is_address(name) for name in shard.names[:1])
    on_accelerator = job.options.get("provider") not in (None, "cpu")
    return Answering(
        adaptor=adaptor,
        box=box,
        reading=job.reading,
        all_probabilities=job.all_probabilities,
        threads=decoding_threads(is_remote, job.shares_cores, on_accelerator),
    )


def load_model(job: Job) -> Box:
    """The model as the client has it."""
    options = dict(job.options)
    takes_threads = isinstance(job.model, str) and job.model.lower().endswith(ONE_THREAD)
    if job.shares_cores and takes_threads and options.get("threads") is None:
        options["threads"] = 1
    box = deployed_model(job.saved, job.model, options, lambda event: None)
    if box.fingerprint() != job.fingerprint:
        raise BoxError(
            f"{job.model} on this worker is not the model of the client; copy the file to every "
            "worker, or use a model on a server."
        )
    return box


def rows_in(place: Place, names: list[str]) -> tuple[int, int]:
    """The rows in parts of earlier processes, and how many of them hold an error."""

    def rows(name: str) -> tuple[int, int]:
        with place.open(name) as file:
            return count_rows(file, f"{place}/{name}")

    with ThreadPoolExecutor(COUNTED_AT_ONCE) as pool:
        counts = list(pool.map(rows, names))
    return sum(count for count, _ in counts), sum(errors for _, errors in counts)
