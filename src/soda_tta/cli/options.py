"""Options that several commands share: which model, which images."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from soda_tta.box.facts import FACTS, Fact
from soda_tta.box.price import Price

if TYPE_CHECKING:
    from soda_tta.box import Box
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


def add_price(group: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add --price, the same for every command that prints costs."""
    group.add_argument(
        "--price",
        type=argument_type(Price.parse),
        metavar="P",
        help="price, to print costs: per 1,000 queries, or as '0.002 per call' or '2.10 per hour' "
        "(default: that of the model's description, if it has one)",
    )


def at_least_one(text: str) -> int:
    """A whole number, such as that of --jobs."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def add_json(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add --json, which every command that prints for people has."""
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def add_model(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Add the options that say which model, what it expects and how to reach it."""
    group = parser.add_argument_group("the model")
    group.add_argument(
        "--model",
        required=required,
        metavar="MODEL",
        help="an .onnx file; http(s)://host:port/v2/models/NAME (Open Inference Protocol: Triton, "
        "KServe, MLServer); a .toml file that describes a REST API (see 'soda-tta describe'); or "
        "file.py:function / package.module:function",
    )
    for fact in FACTS.values():
        if fact.flag is not None:
            add_fact(group, fact)
    group.add_argument(
        "--output",
        metavar="NAME",
        help="the output with the class scores, if the model has several",
    )
    group.add_argument(
        "--class-count",
        type=at_least_one,
        metavar="N",
        help="number of all classes, if an ONNX file returns only its top classes and their "
        "indices",
    )
    group.add_argument(
        "--request-size",
        type=int,
        dest="batch",
        metavar="N",
        help="images per request (default: 64; 256 for a function)",
    )
    remote = parser.add_argument_group("a model over HTTP")
    remote.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help="seconds for a whole request (default: 30; no limit for a function)",
    )
    remote.add_argument(
        "--workers", type=int, metavar="N", help="requests in flight at once (default: 4)"
    )
    remote.add_argument(
        "--retries",
        type=int,
        metavar="N",
        help="how often a request without a response is sent again; each time counts against the "
        "budget (default: 4; 0: never)",
    )
    remote.add_argument(
        "--tensors",
        choices=["binary", "json"],
        help="how images are sent (default: binary if the server offers it)",
    )
    remote.add_argument(
        "--api-key-env", metavar="VAR", help="environment variable that holds the API key"
    )
    remote.add_argument(
        "--api-key-header",
        metavar="H",
        help="HTTP header for the key (default: Authorization, as a bearer token)",
    )
    remote.add_argument(
        "--ca",
        dest="certificate_authority",
        metavar="FILE",
        help="certificate authority to trust (PEM)",
    )


def add_fact(group: argparse._ArgumentGroup, fact: Fact) -> None:
    """Add the option of one entry of the table in box/facts.py."""
    assert fact.flag is not None and fact.parse is not None
    if fact.parse is bool:
        group.add_argument(fact.flag, action="store_true", default=None, help=fact.meaning)
        return
    group.add_argument(
        fact.flag,
        type=argument_type(fact.parse),
        metavar=fact.metavar,
        choices=fact.choices,
        help=fact.meaning,
    )


def argument_type(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """The same function, with a ValueError as the error message of the command line."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


# The flag of each option of `load_box`, for messages that name an option.
MODEL_FLAGS = {
    **{name: fact.flag for name, fact in FACTS.items() if fact.flag is not None},
    "output": "--output",
    "class_count": "--class-count",
    "batch": "--request-size",
    "timeout": "--timeout",
    "workers": "--workers",
    "retries": "--retries",
    "api_key_env": "--api-key-env",
    "api_key_header": "--api-key-header",
    "certificate_authority": "--ca",
}
MODEL_OPTIONS = tuple(MODEL_FLAGS)


def model_options(options: argparse.Namespace) -> dict[str, Any]:
    """What the user specified about the model, as `load_box` takes it."""
    facts = {name: getattr(options, name) for name in MODEL_OPTIONS}
    if options.tensors is not None:
        facts["binary"] = options.tensors == "binary"
    return facts


def model_from(options: argparse.Namespace) -> Box:
    """The box of the model that the options describe."""
    from soda_tta.box import load_box

    return load_box(options.model, **model_options(options))


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
    if for_model:
        group.add_argument(
            "--on-bad-image",
            choices=["fail", "skip"],
            default="fail",
            help="if a file cannot be read: fail, or leave it out and name it (default: fail)",
        )


def images_from(options: argparse.Namespace) -> Images:
    """The images that --images and --size specify, without labels."""
    from soda_tta.data import open_images

    return open_images(options.images, options.size, on_bad_image=options.on_bad_image)


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
    return open_images(options.clean, options.size, on_bad_image=options.on_bad_image)
