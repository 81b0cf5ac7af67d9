"""What a box states about the images it takes, and how ours are turned into those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from PIL import Image

from soda_tta.errors import BoxError, ImageError
from soda_tta.types import Array

DTYPES = ("float32", "float16", "uint8")
NORMALISATION = ("mean", "std", "pixel_range")
CARRIED_OVER = ("mean", "std", "pixel_range", "layout", "channels", "logits", "partial")


@dataclass(frozen=True, kw_only=True)
class Input:
    """The images a deployed model was built for.

    Ours are float32 NCHW RGB in [0, 1]; `prepare` resizes, reorders and normalises them:
    `(pixel * pixel_range - mean) / std`, channel by channel in the order the model wants.

    >>> Input(mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)).prepare(np.ones((1, 3, 2, 2), np.float32)).max()
    np.float32(2.0)
    """

    size: tuple[int, int] | None = None  # height, width; None takes any
    layout: str = "NCHW"
    channels: str = "RGB"
    pixel_range: float | None = None  # the largest pixel value: by default 255 for bytes, else 1
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if self.layout not in ("NCHW", "NHWC"):
            raise BoxError(f"layout {self.layout!r} is unknown; choose NCHW or NHWC.")
        if self.channels not in ("RGB", "BGR", "L"):
            raise BoxError(
                f"channel order {self.channels!r} is unknown; choose RGB, BGR or L (one grey channel)."
            )
        if self.dtype not in DTYPES:
            raise BoxError(f"the model takes {self.dtype}; this package sends {', '.join(DTYPES)}.")
        if self.size is not None:
            object.__setattr__(self, "size", check_size(self.size))
        if self.pixel_range is None:
            object.__setattr__(self, "pixel_range", 255.0 if self.dtype == "uint8" else 1.0)
        elif not (self.pixel_range > 0):
            raise BoxError(f"pixel range {self.pixel_range} is not positive; use 1 or 255.")
        for name in ("mean", "std"):
            value = tuple(float(v) for v in np.atleast_1d(getattr(self, name)))
            if len(value) not in (1, 3):
                raise BoxError(f"{name} has {len(value)} numbers; give one, or one a channel (3).")
            object.__setattr__(self, name, value * 3 if len(value) == 1 else value)
        if min(self.std) <= 0:
            raise BoxError(f"std {self.std} must be positive.")

    @property
    def quantum(self) -> float | None:
        """The smallest step of a pixel that survives the way to the model; None if there is no rounding."""
        return 1 / 255 if self.dtype == "uint8" else None

    def prepare(self, images: Array) -> Array:
        """Our images as this model wants them: never our own array, for a model may write into what it is given."""
        ours = images
        if self.size is not None and images.shape[2:] != self.size:
            images = resize(images, self.size)
        if self.channels == "L":
            images = np.tensordot(images, LUMA, axes=(1, 0))[:, None]
        elif self.channels == "BGR":
            images = images[:, ::-1]
        scale = np.array(self.pixel_range, np.float64) / np.array(self.std)
        shift = np.array(self.mean) / np.array(self.std)
        if np.any(scale != 1) or np.any(shift != 0):
            columns = (1, -1, 1, 1)
            depth = images.shape[1]
            images = images * scale[:depth].astype(np.float32).reshape(columns)
            images -= shift[:depth].astype(np.float32).reshape(columns)
        if self.layout == "NHWC":
            images = images.transpose(0, 2, 3, 1)
        if self.dtype == "uint8":
            images = np.clip(np.rint(images), 0, 255)
        prepared = np.ascontiguousarray(images, dtype=self.dtype)
        return prepared.copy() if np.may_share_memory(prepared, ours) else prepared

    def card(self) -> dict[str, Any]:
        """The same facts as plain JSON."""
        return asdict(self)


LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R 601, as Pillow's "L"


def resize(images: Array, size: tuple[int, int]) -> Array:
    """Resize a batch with Pillow's antialiased bilinear filter, without leaving float32."""
    height, width = size
    resized = np.empty((*images.shape[:2], height, width), np.float32)
    for index in np.ndindex(*images.shape[:2]):
        plane = Image.fromarray(images[index])
        resized[index] = np.asarray(plane.resize((width, height), Image.Resampling.BILINEAR))
    return resized


def input_from_shape(shape: Sequence[int | str | None], dtype: str, /, **stated: Any) -> Input:
    """Read layout, channels and size off a model's declared input shape; what the user states goes first."""
    if len(shape) != 4:
        raise BoxError(
            f"the model's input has shape {list(shape)}; an image model takes four dimensions."
        )
    fixed = [d if isinstance(d, int) and d > 0 else None for d in shape]
    layout = stated.pop("layout", None) or (
        "NHWC" if fixed[3] in (1, 3) and fixed[1] not in (1, 3) else "NCHW"
    )
    depth, height, width = (
        (fixed[1], fixed[2], fixed[3]) if layout == "NCHW" else (fixed[3], fixed[1], fixed[2])
    )
    if depth not in (None, 1, 3):
        raise BoxError(
            f"the model takes {depth} channels ({layout}); only 3 (RGB) or 1 (grey) can be sent."
        )
    if depth == 1:
        stated.setdefault("channels", "L")
    if height is not None and width is not None:
        stated.setdefault("size", (height, width))
    if stated.setdefault("dtype", dtype) != dtype:
        raise BoxError(f"the model takes {dtype}, not {stated['dtype']}.")
    return Input(layout=layout, **stated)


def said_by_shape(shape: Sequence[int | str | None], dtype: str) -> dict[str, Any]:
    """What a declared input leaves no choice in.

    >>> said_by_shape(["n", 224, 224, 3], "uint8")
    {'dtype': 'uint8', 'layout': 'NHWC', 'grey': False}
    >>> said_by_shape([None, None, None, None], "float32")
    {'dtype': 'float32'}
    """
    depths = {"NHWC": shape[3], "NCHW": shape[1]}
    likely = {layout: depth for layout, depth in depths.items() if depth in (1, 3)}
    if not likely:
        return {"dtype": dtype}
    layout = list(likely)[-1]  # NCHW where both are possible, as it is read
    return {"dtype": dtype, "layout": layout, "grey": likely[layout] == 1}


def check_size(size: int | Sequence[int]) -> tuple[int, int]:
    """One number, or height and width."""
    both = (size, size) if isinstance(size, int) else tuple(size)
    if len(both) != 2 or min(both) < 1:
        raise BoxError(f"size {size} makes no sense; give one number, or height and width.")
    return int(both[0]), int(both[1])


def check_images(images: Array) -> Array:
    """Refuse what is not float32 NCHW RGB in [0, 1]."""
    images = np.asarray(images)
    if images.ndim != 4 or images.shape[1] != 3:
        raise ImageError(f"a box takes images of shape (n, 3, height, width); got {images.shape}.")
    if images.dtype != np.float32:
        raise ImageError(
            f"a box takes float32 images in [0, 1]; got {images.dtype}: divide bytes by 255 first."
        )
    if images.size and not (images.min() >= 0 and images.max() <= 1):  # also catches NaN
        low, high = float(images.min()), float(images.max())
        raise ImageError(f"a box takes pixels in [0, 1]; got {low:.4g} .. {high:.4g}.")
    return images


def unusual(box: dict[str, Any]) -> dict[str, Any]:
    """What a model had to be told about its input and output, from the facts of a card.

    >>> unusual({"logits": True, "input": {"mean": [0.0, 0.0, 0.0], "channels": "BGR"}})
    {'logits': True, 'channels': 'BGR'}
    """
    given = box.get("input") or {}
    usual = asdict(Input(dtype=given.get("dtype", "float32")))
    told: dict[str, Any] = {name: True for name in ("logits", "partial") if box.get(name)}
    for name in ("mean", "std", "layout", "channels", "pixel_range"):
        value = tuple(given[name]) if isinstance(given.get(name), list) else given.get(name)
        if value is not None and value != usual[name]:
            told[name] = value
    return told


def carried_over(box: dict[str, Any], says: dict[str, Any]) -> dict[str, Any]:
    """What the model of a card had to be told, for another model: without what that one says itself.

    Normalisation is one fact: a mean is of pixels of some range, and bytes are normalised in the model.

    >>> card = {"logits": True, "input": {"layout": "NHWC", "mean": [0.5, 0.5, 0.5]}}
    >>> carried_over(card, {"layout": "NCHW", "dtype": "uint8"}), carried_over(card, {})
    ({'logits': True}, {'logits': True, 'mean': (0.5, 0.5, 0.5), 'layout': 'NHWC'})
    """
    told = unusual(box)
    own = set(says)
    bytes_now, bytes_then = (
        facts.get("dtype") == "uint8" for facts in (says, box.get("input") or {})
    )
    if own.intersection(NORMALISATION) or ("dtype" in says and bytes_now != bytes_then):
        own.update(NORMALISATION)
    if "grey" in says and (told.get("channels") == "L") != says["grey"]:
        own.add("channels")
    return {name: value for name, value in told.items() if name not in own}


def as_options(told: dict[str, Any]) -> list[str]:
    """The same on the command line.

    >>> as_options({"logits": True, "mean": (0.5, 0.5, 0.25), "pixel_range": 255.0, "channels": "BGR"})
    ['--logits', '--mean', '0.5,0.5,0.25', '--pixel-range', '255', '--channels', 'BGR']
    """
    words: list[str] = []
    for name, value in told.items():
        words.append(f"--{name.replace('_', '-')}")
        if isinstance(value, tuple):
            words.append(",".join(f"{number:g}" for number in value))
        elif value is not True:
            words.append(value if isinstance(value, str) else f"{value:g}")
    return words
