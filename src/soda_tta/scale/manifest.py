"""What lies beside the answers of an archive: what was asked for, the shards, and the sum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from soda_tta.adaptors import Adaptor
from soda_tta.box import Box
from soda_tta.data.archives.places import Place
from soda_tta.data.archives.shards import Shard
from soda_tta.data.colours import colour_text
from soda_tta.data.reading import Reading
from soda_tta.errors import RunError, StorageError
from soda_tta.foreign_json import parse_json
from soda_tta.masking import masked
from soda_tta.plain_json import plain_json
from soda_tta.scale.backend import differences, versions

# Readers of a folder of Parquet files leave out names that begin with an underscore.
MANIFEST = "_manifest.json"
SHARDS = "_shards.jsonl"
SUMMARY = "_summary.json"
FORMAT = 1
MANY_IMAGES = 4000  # of an archive; with fewer, compiling its adaptor costs more than it saves
MANY_SHARDS = 8  # tar files, whose images are not counted before they are read
MEANINGS = {
    "format": "version of the manifest",
    "adaptor": "adaptor",
    "model": "model",
    "images": "images",
    "reading": "size or colour under transparency",
    "all_probabilities": "columns",
    "shard_size": "number of images per shard",
}


@dataclass(frozen=True)
class Summary:
    """What became of an archive.

    Attributes
    ----------
    shards, finished : int
        All shards, and those whose answers are written.
    images, errors : int
        Rows that are written, and those of images that could not be read.
    queries : int
        Sent to the model for finished shards, retries included, by earlier processes too. A query
        is counted when its shard is finished: shards that were stopped, killed or failed are
        billed again when they are answered again.
    complete : bool
        Whether every shard is finished.
    """

    shards: int
    finished: int
    images: int
    errors: int
    queries: int
    complete: bool


def part_name(number: int) -> str:
    """The file with the answers to a shard.

    >>> part_name(12)
    'part-00012.parquet'
    """
    return f"part-{number:05d}.parquet"


def adaptor_digest(adaptor: Adaptor) -> str:
    """A hash of everything that determines what an adaptor does."""
    facts: list[Any] = [adaptor.kind, adaptor.settings]
    if not adaptor.answering.is_plain:
        facts.append(adaptor.answering.settings)
    content = json.dumps(facts).encode() + adaptor.parameters.tobytes()
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def manifest_of(
    adaptor: Adaptor,
    box: Box,
    images: str,
    reading: Reading,
    all_probabilities: bool,
    shard_size: int,
) -> dict[str, Any]:
    """Everything that the answers depend on, as plain JSON."""
    return {
        "format": FORMAT,
        "adaptor": {"kind": adaptor.kind, "digest": adaptor_digest(adaptor)},
        "model": box.card(),
        "images": masked(images),
        "reading": {"size": reading.resize.size, "over": colour_text(reading.over)},
        "all_probabilities": all_probabilities,
        "shard_size": shard_size,
        "versions": versions(),
    }


def check_free(place: Place) -> None:
    """Refuse a folder that holds something."""
    names = place.names()
    if MANIFEST in names:
        raise StorageError(
            f"{place} holds answers; continue them with resume=True, or choose another out=."
        )
    if names - {SHARDS}:  # a list without a manifest: killed before the first query
        raise StorageError(f"{place} holds other files; choose another out=.")


class Found(NamedTuple):
    """What an archive turned out to be when it was listed."""

    is_imagenet: bool
    shards: int
    images: int | None  # None: not known before all is read

    @property
    def is_large(self) -> bool:
        """Whether it is worth seconds to make the adaptor faster."""
        if self.images is None:
            return self.shards >= MANY_SHARDS
        return self.images >= MANY_IMAGES

    def facts(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return {"shards": self.shards, "images": self.images, "imagenet": self.is_imagenet}


class Stored(NamedTuple):
    """What answers that are continued began with."""

    found: Found
    other_versions: list[str]


def check_same(place: Place, wanted: dict[str, Any]) -> Stored:
    """Refuse to continue answers to something else."""
    if MANIFEST not in place.names():
        raise StorageError(f"there are no answers to continue in {place}.")
    stored = _parsed(place.read(MANIFEST), f"{place}/{MANIFEST}")
    plain = plain_json(wanted)
    different = [text for name, text in MEANINGS.items() if stored.get(name) != plain[name]]
    if different:
        raise RunError(
            f"the answers in {place} are of another {' and another '.join(different)}; repeat "
            "the command that began them, or choose another out=."
        )
    other = differences(versions(), stored.get("versions") or {})
    found = stored.get("found") or {}
    images = found.get("images")
    return Stored(Found(bool(found.get("imagenet")), found.get("shards", 0), images), other)


def write_shards(place: Place, shards: Iterable[Shard]) -> tuple[int, int | None]:
    """Write the list of shards; returns how many, and how many images they hold if it is known.

    The list is kept, so that a resume answers the same images, also if others have arrived.
    """
    count = 0
    images: int | None = 0
    with place.new_file(SHARDS) as path, path.open("w", encoding="utf-8") as file:
        for shard in shards:
            file.write(json.dumps(shard.facts()) + "\n")
            count += 1
            unknown = images is None or shard.images is None
            images = None if unknown else (images or 0) + (shard.images or 0)
    return count, images


def read_shards(place: Place) -> Iterator[tuple[int, Shard]]:
    """The shards with their numbers, one at a time."""
    with place.open(SHARDS) as file:
        for number, line in enumerate(file):
            facts = _parsed(line, f"{place}/{SHARDS}, line {number + 1},")
            yield number, Shard.from_facts(facts)


def write_json(place: Place, name: str, facts: dict[str, Any]) -> None:
    """Write a file of plain JSON."""
    place.write(name, (json.dumps(facts, indent=1) + "\n").encode())


def read_summary(place: Place) -> dict[str, Any]:
    """The summary of earlier processes; empty if there is none."""
    if SUMMARY not in place.names():
        return {}
    return _parsed(place.read(SUMMARY), f"{place}/{SUMMARY}")


def write_summary(place: Place, summary: Summary) -> None:
    """Write the summary."""
    write_json(place, SUMMARY, asdict(summary))


def _parsed(data: bytes, where: str) -> dict[str, Any]:
    try:
        facts = parse_json(data)
        if not isinstance(facts, dict):
            raise ValueError("it is not an object")
        return facts
    except ValueError as error:
        raise RunError(f"{where} is damaged: {error}; begin again in another out=.") from error
