"""Options that say which images, and how their files are read."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soda_tta.cli.options import at_least_one
from soda_tta.cli.spelling import complain

if TYPE_CHECKING:
    from soda_tta.data import Images


def size(text: str) -> tuple[int, int]:
    """'224' or '320x224' (width x height) as (height, width)."""
    try:
        width, *rest = (int(side) for side in text.split("x", 1))
        height = rest[0] if rest else width
        if min(width, height) < 1:
            raise ValueError
        return height, width
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size; write 224, or 320x224 for width x height"
        ) from None


def add_images(parser: argparse.ArgumentParser, for_model: bool = True) -> None:
    """Add --images and --size, the same for every command that takes images."""
    group = parser.add_argument_group("the images")
    group.add_argument(
        "--images",
        required=True,
        metavar="PATH",
        help="a folder, an image, an .npy, .npz or .csv file, or a data set by name "
        "(cifar10, pacs/sketch)",
    )
    default = "the model's size, without a crop, if they are larger" if for_model else "as they are"
    group.add_argument(
        "--size",
        type=size,
        metavar="S",
        help=f"resize and crop every file to this, e.g. 224 or 320x224 (default: {default}; "
        "ImageNet's WordNet folders: 224)",
    )
    add_reading(group)


def colour(text: str) -> tuple[int, int, int]:
    """A colour under transparent pixels."""
    from soda_tta.data.colours import colour_of
    from soda_tta.errors import ImageError

    try:
        return colour_of(text)
    except ImageError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("over=").rstrip(".")) from None


def add_reading(group: argparse._ArgumentGroup) -> None:
    """Add --over and --on-bad-image, the same for every command that reads image files."""
    group.add_argument(
        "--over",
        type=colour,
        default=(255, 255, 255),  # a text would be parsed, and import the package, every time
        metavar="COLOUR",
        help="what shows through transparent pixels: white, black, or R,G,B such as 124,116,104 "
        "(default: white)",
    )
    group.add_argument(
        "--on-bad-image",
        choices=["fail", "skip"],
        default="fail",
        help="if a file cannot be read: fail, or leave it out and name it (default: fail)",
    )


def reading_of(options: argparse.Namespace) -> dict[str, Any]:
    """What `add_reading` specifies, as `open_images` and `load_dataset` take it."""
    return {"over": options.over, "on_bad_image": options.on_bad_image}


def images_from(options: argparse.Namespace, kept: Path | None = None) -> Images:
    """The images that --images, --size and --sample specify, without labels.

    The list of a sample is kept in the folder `kept`, if there is one.
    """
    from soda_tta.data import open_images

    sample = getattr(options, "sampled", None)
    how = reading_of(options)
    if sample is None:
        return open_images(options.images, options.size, **how)
    images = open_images(
        options.images, options.size, sample=sample, seed=options.seed, kept=kept, **how
    )
    complain(sample_sentence(len(images), images.sample or {}))
    return images


def sample_sentence(count: int, facts: dict[str, Any]) -> str:
    """How a sample was chosen.

    >>> sample_sentence(500, {"asked": 500, "of": 10_000})
    'learning from 500 of 10,000 images, chosen at random.'
    """
    if facts.get("of") is not None:
        return f"learning from {count:,} of {facts['of']:,} images, chosen at random."
    opened = f"{facts['opened']:,} of {facts['containers']:,}"
    return f"learning from {count:,} images of {opened} shards, chosen at random."


def add_sample(group: argparse._ArgumentGroup, use: str) -> None:
    """Add --sample; `use` is what is done with the images."""
    group.add_argument(
        "--sample",
        dest="sampled",  # the doctor's own --sample is how many images it examines
        type=at_least_one,
        metavar="N",
        help=f"{use} N of the images, chosen at random; the pixels of the others are not read, "
        "and --images may then also be tar or Parquet files, or an address such as "
        "s3://bucket/folder",
    )


def add_clean(group: argparse._ArgumentGroup, use: str = "") -> None:
    """Add --clean and --clean-accuracy; `use` is what else to know about the images."""
    group.add_argument(
        "--clean",
        metavar="DIR",
        help=f"images from before the shift; they need no labels{use}",
    )
    add_clean_accuracy(group)


def add_clean_accuracy(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add --clean-accuracy."""
    parser.add_argument(
        "--clean-accuracy",
        type=float,
        metavar="A",
        help="accuracy of the model on clean images, as a share of 1, if it is known: "
        "it allows an estimate of the accuracy without labels",
    )


def clean_from(options: argparse.Namespace) -> Images | None:
    """The images that --clean and --size specify."""
    from soda_tta.data import open_images

    if options.clean is None:
        return None
    return open_images(options.clean, options.size, **reading_of(options))
