"""How the files of a set are read, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from soda_tta.data.colours import WHITE, Colour
from soda_tta.data.decoding import Decoded, decode
from soda_tta.data.resizing import Resize
from soda_tta.errors import ImageError

OnBadImage = Literal["fail", "skip"]


@dataclass(frozen=True)
class Reading:
    """What happens to every file of a set.

    Parameters
    ----------
    resize : Resize, default Resize()
        By default files stay as they are and must have one size.
    over : Colour, default white
        What shows through where an image is transparent.
    on_bad_image : {"fail", "skip"}, optional
        "skip" decodes every file at once and leaves out those that cannot be read; "fail" names
        that remedy in the error. Default: None, an error without that remedy.
    """

    resize: Resize = Resize()
    over: Colour = WHITE
    on_bad_image: OnBadImage | None = None

    def __post_init__(self) -> None:
        if self.on_bad_image not in (None, "fail", "skip"):
            raise ImageError(
                f"on_bad_image={self.on_bad_image!r} is not valid; use 'fail' or 'skip'."
            )

    def __call__(self, path: Path) -> Decoded:
        """Decode one file."""
        return decode(path, self.resize, self.over)
