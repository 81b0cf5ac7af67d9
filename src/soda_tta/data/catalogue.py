"""The data sets known by name, and where they are searched for."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from soda_tta.data.home import VARIABLE, cache_home, data_home
from soda_tta.errors import ImageError, SodaError


@dataclass(frozen=True)
class Known:
    """A data set known by name.

    Attributes
    ----------
    what : str
        What it is, in a few words.
    places : tuple of str
        Names it may have in a data home, in this order; ``{split}`` is "test" or "train".
    source : str
        Where to get it: a command or an address.
    """

    what: str
    places: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Source:
    """Where images lie: a path and, for a name of the catalogue, the name and a part of it."""

    path: Path
    name: str | None = None
    part: str | None = None  # "sketch" in "pacs/sketch": a domain or a folder of the data set


KNOWN = {
    "cifar10": Known(
        "CIFAR-10",
        (
            "cifar10-{split}.npz",
            "cifar-10-batches-bin",
            "cifar-10-batches-py",
            "cifar10",
            "CIFAR-10",
        ),
        "soda-tta data get cifar10",
    ),
    "cifar100": Known(
        "CIFAR-100, fine labels",
        ("cifar100-{split}.npz", "cifar-100-binary", "cifar-100-python", "cifar100", "CIFAR-100"),
        "soda-tta data get cifar100",
    ),
    "cifar10-c": Known(
        "CIFAR-10-C", ("CIFAR-10-C", "cifar10-c"), "https://zenodo.org/records/2535967"
    ),
    "cifar100-c": Known(
        "CIFAR-100-C", ("CIFAR-100-C", "cifar100-c"), "https://zenodo.org/records/3555552"
    ),
    "imagenet": Known(
        "ImageNet-1k", ("imagenet", "ImageNet", "ILSVRC2012"), "https://image-net.org"
    ),
    "imagenet-c": Known(
        "ImageNet-C", ("ImageNet-C", "imagenet-c"), "https://zenodo.org/records/2235448"
    ),
    "imagenet-1000": Known(
        "1,000 ImageNet-like photographs of the NIPS 2017 contest",
        ("imagenet-1000",),
        "its public home",
    ),
    "imagenet-val-2000": Known(
        "2,000 ImageNet validation images, two per class, cropped to 224x224",
        ("imagenet-val-2000",),
        "https://github.com/ndb796/Small-ImageNet-Validation-Dataset-1000-Classes",
    ),
    "pacs": Known("PACS, four domains", ("pacs", "PACS"), "its public home"),
    "office-home": Known(
        "Office-Home, four domains",
        ("office-home", "OfficeHome", "OfficeHomeDataset_10072016"),
        "https://www.hemanthdv.org/officeHomeDataset.html",
    ),
}


def spelled(name: str) -> str | None:
    """The name as the catalogue spells it; None where it is not in the catalogue.

    Parameters
    ----------
    name : str
        With any capitals, hyphens and underscores.

    Examples
    --------
    >>> spelled("CIFAR-10-C"), spelled("Office_Home"), spelled("mnist")
    ('cifar10-c', 'office-home', None)
    """
    plain = {known.replace("-", ""): known for known in KNOWN}
    return plain.get(name.lower().replace("-", "").replace("_", ""))


def find_source(source: str | os.PathLike[str], split: str = "test") -> Source:
    """What the user means by a name or a path.

    "cifar10" is the data set of the catalogue, or a path if no data home holds that data set.
    "pacs/sketch" is a path if it exists, else a part of the data set. Anything else is a path.

    Parameters
    ----------
    source : str or path
        A path object is never taken for a name.
    split : {"test", "train"}, default "test"
        Some data sets lie in one file per split.
    """
    path = Path(source)
    if not isinstance(source, str):
        return Source(path)
    first, slash, part = source.partition("/")
    name = spelled(first)
    if name is None or (slash and (not part or path.exists())):
        return Source(path)
    try:
        return Source(locate(name, split), name, part or None)
    except ImageError:
        if path.exists():
            return Source(path)
        raise


def homes() -> list[Path]:
    """The folders searched for data sets: the data home and the cache, where they exist."""
    folders = [cache_home() / "data"]
    with suppress(SodaError):
        folders.insert(0, data_home())
    return [folder for folder in folders if folder.is_dir()]


def locate(name: str, split: str = "test") -> Path:
    """Where a data set of the catalogue lies; the first data home that has it wins.

    Parameters
    ----------
    name : str
        As the catalogue spells it.
    split : {"test", "train"}, default "test"
        Some data sets lie in one file per split.
    """
    places = [place.format(split=split) for place in KNOWN[name].places]
    for home in homes():
        for place in places:
            if (home / place).exists():
                return home / place
    searched = ", ".join(map(str, homes())) or "no folder, because none exists"
    raise ImageError(
        f"{name} was not found as {' or '.join(places)} (searched: {searched}); "
        f"get it from {KNOWN[name].source}, or set {VARIABLE} to the folder that holds it."
    )


def download_home() -> Path:
    """Where downloads go: the data home if it is writable, else the cache."""
    variable = os.environ.get(VARIABLE)
    if variable and not Path(variable).exists():
        return Path(variable)
    try:
        home = data_home()
    except SodaError:
        return cache_home() / "data"
    # root may write anywhere; a folder that its owner marked read-only is left alone all the same
    writable = os.access(home, os.W_OK) and home.stat().st_mode & 0o222
    return home if writable else cache_home() / "data"
