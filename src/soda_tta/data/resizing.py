"""The one resize-and-crop for image files, as a value that can be printed on the protocol card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from soda_tta.errors import ImageError

# ImageNet models are evaluated on the shorter side resized to 256, then the centre of 224.
IMAGENET_SHORTER = 256
IMAGENET_CROP = 224


@dataclass(frozen=True)
class Resize:
    """What happens to every image file of a set before its pixels are used.

    The image is resized (bilinear, aspect ratio kept) until it just covers `cover`, then the
    centre of `size` is cropped. Fractions are rounded as torchvision rounds them. An image that
    already has `size` stays as it is, so applying a `Resize` twice equals applying it once.

    Parameters
    ----------
    size : (int, int), optional
        Height and width of the result in pixels. Default: None, images stay as they are.
    cover : (int, int), optional
        Height and width in pixels that the resized image covers before the crop.
        Default: the same as `size`.

    Examples
    --------
    >>> Resize((32, 32))(Image.new("RGB", (640, 480))).size
    (32, 32)
    >>> print(Resize())
    as they are
    >>> print(Resize((224, 224), cover=(256, 256)))
    shorter side resized to 256 (bilinear), centre crop of 224x224; 224x224 as they are
    """

    size: tuple[int, int] | None = None
    cover: tuple[int, int] | None = None

    @classmethod
    def imagenet(cls, size: tuple[int, int] = (IMAGENET_CROP, IMAGENET_CROP)) -> Resize:
        """The standard view of ImageNet: 256, then 224; other sizes in the same proportion.

        >>> Resize.imagenet((112, 112)).cover
        (128, 128)
        """
        height, width = size
        margin = IMAGENET_SHORTER / IMAGENET_CROP
        return cls(size, cover=(round(height * margin), round(width * margin)))

    def __call__(self, picture: Image.Image) -> Image.Image:
        """Resize and crop one picture."""
        if self.size is None or (picture.height, picture.width) == self.size:
            return picture
        height, width = self.size
        resized = picture.resize(self._covering(picture), Image.Resampling.BILINEAR)
        left = round((resized.width - width) / 2)
        top = round((resized.height - height) / 2)
        return resized.crop((left, top, left + width, top + height))

    def _covering(self, picture: Image.Image) -> tuple[int, int]:
        """Width and height of the smallest copy that covers `cover`."""
        assert self.size is not None
        height, width = self.cover or self.size
        if picture.width * height <= picture.height * width:
            return width, width * picture.height // picture.width
        return height * picture.width // picture.height, height

    def __str__(self) -> str:
        if self.size is None:
            return "as they are"
        cover = self.cover or self.size
        square = cover[0] == cover[1] and self.size[0] == self.size[1]
        how = (
            f"shorter side resized to {cover[0]}"
            if square
            else f"resized to cover {size_text(cover)}"
        )
        crop = size_text(self.size)
        return f"{how} (bilinear), centre crop of {crop}; {crop} as they are"


def size_text(size: Sequence[int]) -> str:
    """A size as people write it, width first.

    >>> size_text((224, 320))
    '320x224'
    """
    return f"{size[1]}x{size[0]}"


def check_size(size: int | Sequence[int]) -> tuple[int, int]:
    """Height and width in pixels.

    Parameters
    ----------
    size : int or (int, int)
        One number for a square, or height and width, in pixels.

    Examples
    --------
    >>> check_size(224)
    (224, 224)
    """
    sides = (size, size) if isinstance(size, int) else tuple(size)
    if len(sides) != 2 or min(sides) < 1:
        raise ImageError(f"size={size} is not a valid size; pass one number, or (height, width).")
    return int(sides[0]), int(sides[1])
