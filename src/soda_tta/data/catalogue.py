"""The data sets known by name, and where they are looked for."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from soda_tta.data.home import VARIABLE, cache_home, data_home
from soda_tta.errors import ImageError, SodaError


@dataclass(frozen=True)
class Known:
    """What a data set is, what it may be called in a home, and where a person gets it."""

    what: str
    places: tuple[str, ...]
    source: str


CIFAR_HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"
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
    "pacs": Known("PACS, four domains", ("pacs", "PACS"), "its public home"),
    "office-home": Known(
        "Office-Home, four domains",
        ("office-home", "OfficeHome", "OfficeHomeDataset_10072016"),
        "https://www.hemanthdv.org/officeHomeDataset.html",
    ),
}


def spelled(name: str) -> str | None:
    """The name as it stands in the catalogue, whichever way it was written; None when it is not there.

    >>> spelled("CIFAR-10-C"), spelled("Office_Home"), spelled("mnist")
    ('cifar10-c', 'office-home', None)
    """
    plain = {known.replace("-", ""): known for known in KNOWN}
    return plain.get(name.lower().replace("-", "").replace("_", ""))


def homes() -> list[Path]:
    """The folders that are searched, those that exist."""
    found = []
    with suppress(SodaError):
        found.append(data_home())
    found.append(cache_home() / "data")
    return [home for home in found if home.is_dir()]


def locate(name: str, split: str = "test") -> Path:
    """Where a data set of the catalogue lies; the first home that has it wins."""
    places = [place.format(split=split) for place in KNOWN[name].places]
    for home in homes():
        for place in places:
            if (home / place).exists():
                return home / place
    searched = ", ".join(map(str, homes())) or "no folder, because none exists"
    raise ImageError(
        f"{name} was not found as {' or '.join(places)} (searched: {searched}); get it from {KNOWN[name].source}, "
        f"or set {VARIABLE} to the folder that holds it."
    )


def download_home() -> Path:
    """Where downloads go: the data home if it may be written to, else the cache."""
    named = os.environ.get(VARIABLE)
    if named and not Path(named).exists():
        return Path(named)
    try:
        home = data_home()
    except SodaError:
        return cache_home() / "data"
    # The administrator may write anywhere; a folder whose owner marked it read-only is still left alone.
    writable = os.access(home, os.W_OK) and home.stat().st_mode & 0o222
    return home if writable else cache_home() / "data"
