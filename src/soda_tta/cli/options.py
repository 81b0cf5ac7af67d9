"""Options that several commands share: which model, which images."""

from __future__ import annotations

import argparse
from typing import Any

from soda_tta.box import Box, load_box
from soda_tta.data import Images, open_images


def numbers(text: str) -> tuple[float, ...]:
    """'0.49,0.48,0.45' as numbers."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number, or three separated by commas"
        ) from None


def size(text: str) -> tuple[int, int]:
    """'224' or '224x320' (width x height) as (height, width)."""
    try:
        width, *height = (int(side) for side in text.split("x", 1))
        return (height or [width])[0], width
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size; write 224, or 320x224 for width x height"
        ) from None


def add_model(parser: argparse.ArgumentParser, required: bool = True) -> None:
    group = parser.add_argument_group("the model")
    group.add_argument(
        "--model",
        required=required,
        metavar="M",
        help="an .onnx file; http(s)://host:port/v2/models/NAME (Open Inference Protocol: Triton, KServe, MLServer); "
        "or file.py:function / package.module:function",
    )
    group.add_argument(
        "--logits",
        action="store_true",
        default=None,
        help="the model returns logits, not probabilities",
    )
    group.add_argument(
        "--partial",
        action="store_true",
        default=None,
        help="it returns only the top classes, or rounded probabilities",
    )
    group.add_argument(
        "--mean", type=numbers, metavar="R,G,B", help="what the model wants subtracted"
    )
    group.add_argument("--std", type=numbers, metavar="R,G,B", help="and what it wants divided by")
    group.add_argument(
        "--pixel-range",
        type=float,
        metavar="N",
        help="largest pixel value before that: 1 (default) or 255",
    )
    group.add_argument(
        "--layout", choices=["NCHW", "NHWC"], help="if the model's shapes do not say it"
    )
    group.add_argument(
        "--channels", choices=["RGB", "BGR", "L"], help="order of the channels (default RGB)"
    )
    group.add_argument(
        "--output", metavar="NAME", help="which output holds the class scores, if there are several"
    )
    group.add_argument(
        "--request-size", type=int, dest="batch", metavar="N", help="images a request (default 64)"
    )
    remote = parser.add_argument_group("a model over HTTP")
    remote.add_argument(
        "--timeout", type=float, metavar="S", help="seconds to wait for an answer (default 30)"
    )
    remote.add_argument(
        "--workers", type=int, metavar="N", help="requests under way at once (default 4)"
    )
    remote.add_argument(
        "--tensors",
        choices=["binary", "json"],
        help="how images travel (default: what the server offers)",
    )
    remote.add_argument(
        "--api-key-env", metavar="VAR", help="environment variable that holds the API key"
    )
    remote.add_argument(
        "--api-key-header",
        metavar="H",
        help="header it goes into (default Authorization: Bearer ...)",
    )
    remote.add_argument(
        "--ca",
        dest="certificate_authority",
        metavar="FILE",
        help="certificate authority to trust (PEM)",
    )


MODEL_OPTIONS = (
    *("logits", "partial", "mean", "std", "pixel_range", "layout", "channels", "output", "batch"),
    *("timeout", "workers", "api_key_env", "api_key_header", "certificate_authority"),
)


def model_from(options: argparse.Namespace) -> Box:
    stated: dict[str, Any] = {name: getattr(options, name) for name in MODEL_OPTIONS}
    stated["binary"] = None if options.tensors is None else options.tensors == "binary"
    return load_box(options.model, **stated)


def add_images(parser: argparse.ArgumentParser) -> None:
    """Add --images and --size, the same for every command that takes images."""
    group = parser.add_argument_group("the images")
    group.add_argument(
        "--images",
        required=True,
        metavar="PATH",
        help="a folder, an image, an .npy, .npz or .csv file, or a data set by name "
        "(cifar10, pacs/sketch)",
    )
    group.add_argument(
        "--size",
        type=size,
        metavar="S",
        help="resize every file to this, e.g. 224 or 320x224 (default: as they are; ImageNet's "
        "WordNet folders: 224)",
    )


def images_from(options: argparse.Namespace) -> Images:
    """The images that --images and --size specify, without labels."""
    return open_images(options.images, options.size)
