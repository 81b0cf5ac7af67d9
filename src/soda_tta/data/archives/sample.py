"""A random sample of an archive: names are listed, and only the images that are chosen are read."""

from __future__ import annotations

import heapq
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from soda_tta.data.archives.contents import BESIDE, Content, Loader, MissingImage, contents
from soda_tta.data.archives.places import is_address
from soda_tta.data.archives.shards import Archive, Shard
from soda_tta.errors import ImageError
from soda_tta.foreign_json import parse_json
from soda_tta.randomness import RandomStream, generator
from soda_tta.storage.atomic import write_bytes, write_text

CONTAINERS = 16  # tar files and row groups to choose from, at least
FETCHED_AT_ONCE = 32  # images of a store that are on their way
LIST = "sample.json"


class Chosen(NamedTuple):
    """One image of a sample: its name in the archive, and its file on this machine."""

    name: str
    path: Path


@dataclass
class Sample:
    """Images of an archive, chosen at random, each as likely as any other.

    Parameters
    ----------
    images : list of Chosen
        In the order of the archive.
    facts : dict
        What a protocol card says: `asked` for, `of` so many (None if only some of the tar files
        and row groups were opened; then `opened` and `containers` count these), `seed`.
    """

    images: list[Chosen]
    facts: dict[str, Any]

    def write(self, folder: Path, source: str) -> None:
        """Keep the list, so that a run that is resumed has the same images."""
        files = [[name, str(path)] for name, path in self.images]
        write_text(
            folder / LIST, json.dumps({"source": source, "facts": self.facts, "files": files})
        )

    @staticmethod
    def read(folder: Path, source: str, count: int, seed: int) -> Sample:
        """The sample that was kept in a folder; refuses that of another source or seed."""
        path = folder / LIST
        try:
            stored = parse_json(path.read_bytes())
            facts = stored["facts"]
            same = (stored["source"], facts["asked"], facts["seed"]) == (source, count, seed)
            images = [Chosen(name, Path(file)) for name, file in stored["files"]]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ImageError(f"{path} is damaged ({error}); choose another out=.") from error
        if not same:
            raise ImageError(
                f"{path} is another sample ({facts['asked']:,} images of {stored['source']}, seed "
                f"{facts['seed']}); choose another out=."
            )
        return Sample(images, facts)


class Reservoir:
    """Keeps the so many images with the smallest random keys: a uniform sample of all.

    Parameters
    ----------
    count : int
        Images to keep.
    random : Generator
        Draws one key for each image.

    Examples
    --------
    >>> sample = Reservoir(2, np.random.default_rng(0))
    >>> names = [f"{place}.png" for place in range(9) if sample.wants()]
    """

    def __init__(self, count: int, random: np.random.Generator) -> None:
        self.count = count
        self.random = random
        self.offered = 0
        self.key = 0.0  # of the image that was offered last
        self.kept: list[tuple[float, tuple[int, int], Any]] = []  # a heap; the largest key first

    def wants(self, name: str = "") -> bool:
        """Whether the next image belongs to the sample of all images so far; then `add` it."""
        self.offered += 1
        self.key = self.random.random()
        return len(self.kept) < self.count or self.key < -self.kept[0][0]

    def add(self, place: tuple[int, int], image: Any) -> Any:
        """Keep the image that was wanted; returns the one that has to leave, or None."""
        entry = (-self.key, place, image)
        if len(self.kept) < self.count:
            heapq.heappush(self.kept, entry)
            return None
        return heapq.heapreplace(self.kept, entry)[2]

    def in_order(self) -> list[Any]:
        """The kept images in the order of their places."""
        return [image for _, _, image in sorted(self.kept, key=lambda entry: entry[1])]


def draw(archive: Archive, count: int, seed: int, folder: Path) -> Sample:
    """Choose images of an archive at random.

    The names of all image files are listed. Of tar files and row groups of Parquet files, some are
    chosen at random and read once: 16, or more if those hold fewer images than the sample.

    Parameters
    ----------
    archive : Archive
    count : int
        Images to choose, at most.
    seed : int
    folder : Path
        Where images are written that are not files on this machine.
    """
    random = generator(seed, RandomStream.SAMPLE)
    reservoir = Reservoir(count, random)
    containers: list[Shard] = []
    position = 0
    for shard in archive.shards:
        if shard.kind != "files":
            containers.append(shard)
            continue
        for content in contents(shard, reservoir.wants):
            position += 1
            reservoir.add((0, position), content)
    opened = 0
    for number in random.permutation(len(containers)):
        if opened >= CONTAINERS and reservoir.offered >= count:
            break
        opened += 1
        inside = folder / str(number)
        for place, content in enumerate(contents(containers[number], reservoir.wants)):
            removed = reservoir.add((number + 1, place), stored(content, inside))
            if isinstance(removed, Chosen):
                removed.path.unlink(missing_ok=True)
    if not reservoir.offered:
        raise ImageError("there is no image to learn from; a sample needs at least one.")
    facts: dict[str, Any] = {"asked": count, "of": reservoir.offered, "seed": seed}
    if opened < len(containers):
        facts |= {"of": None, "opened": opened, "containers": len(containers)}
    return Sample(fetched(reservoir.in_order(), folder), facts)


def stored(content: Content, folder: Path) -> Chosen:
    """An image as a file in a folder; one without bytes is a file that cannot be read."""
    path = folder.joinpath(*safe_parts(content.name))
    try:
        data = content.load()
    except MissingImage:
        data = b""
    write_bytes(path, data)
    return Chosen(content.name, path)


def safe_parts(name: str) -> list[str]:
    """A name from an archive as the parts of a relative path.

    >>> safe_parts("../a/./b.png"), safe_parts("s3://bucket/c.png")
    (['a', 'b.png'], ['s3_', 'bucket', 'c.png'])
    """
    parts = [part.replace(":", "_") for part in PurePosixPath(name).parts]
    return [part for part in parts if part not in ("/", "..", ".")] or ["image"]


def fetched(images: list[Content | Chosen], folder: Path) -> list[Chosen]:
    """The chosen images as files on this machine; those of a store are downloaded."""

    def on_this_machine(image: Content | Chosen) -> Chosen:
        if isinstance(image, Chosen):
            return image
        path = local_path(image)
        return stored(image, folder) if path is None else Chosen(image.name, path)

    with ThreadPoolExecutor(FETCHED_AT_ONCE, thread_name_prefix="fetch") as pool:
        try:
            return list(pool.map(on_this_machine, images))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def local_path(content: Content) -> Path | None:
    """The file of an image, if it is on this machine."""
    loader = content.load
    assert isinstance(loader, Loader)
    if is_address(loader.name) or is_address(loader.place):
        return None
    beside = Path(loader.place, BESIDE, loader.name)
    return beside if beside.is_file() else Path(loader.place, loader.name)
