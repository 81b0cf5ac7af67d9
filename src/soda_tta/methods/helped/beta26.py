"""BETA-26: a border and a helper learn online, and each answer is averaged with the helper's.

From its description (Adapting in the Dark, 2026), not its code. It is not the BETA of `beta`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from soda_tta.data import Images
from soda_tta.data.resizing import size_text
from soda_tta.engine.work import Work
from soda_tta.errors import MethodError
from soda_tta.methods.helped.helped import Helped
from soda_tta.methods.tools import seeded
from soda_tta.settings import setting
from soda_tta.types import Array

if TYPE_CHECKING:
    from soda_tta.methods.helped.tuning import Constants

# What each variant does: the method itself, and the controls that take it apart.
VARIANTS = ("full", "helper", "helper-adapted", "f0", "f1", "f2", "framed")
WITHOUT_MODEL = ("helper", "helper-adapted")


@dataclass(frozen=True, kw_only=True)
class Beta26(Helped):
    """One query per image: the model sees only the framed image, and is answered before the step.

    Variants: `full` is the method. `helper` and `helper-adapted` answer with the helper alone.
    `f0` averages with the helper as it is, `f1` with the helper adapted on the images, both without
    the border. `f2` is the method with its first, random border. `framed` is the model's own answer
    to the framed image. So f1 - f0 is what adapting the helper brings, f2 - f1 the shrinking, and
    full - f2 the learned border.
    """

    name: str = "beta26"
    summary: str = "With a helper: a learned border, and answers averaged with the helper's."
    variant: str = setting("full", f"the method, or a control: {', '.join(VARIANTS[1:])}")
    alpha: float = setting(0.4, "weight of the helper's answer")
    batch: int = setting(64, "images per step")
    pad: int = setting(0, "pixels of border on each side; 0: a 14th of the side, as published")
    lr: float = setting(0.01, "learning rate of the border")
    norm_lr: float = setting(
        2e-5, "learning rate of the helper's normalisation layers, at 1,000 classes"
    )
    reliable: float = setting(
        0.9, "share of the largest entropy below which an answer of the helper is reliable"
    )
    divergence: float = setting(
        50.0, "weight of the KL divergence between the helper's two answers, at 1,000 classes"
    )
    likeness: float = setting(
        0.05, "cosine to the mean answer below which an answer teaches, at 1,000 classes"
    )
    scaled: bool = setting(
        True, "carry the constants over to the number of classes; false: as published"
    )

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise MethodError(
                f"there is no variant {self.variant!r}; choose one of {', '.join(VARIANTS)}."
            )
        if not (0 <= self.alpha <= 1 and self.batch >= 1 and self.pad >= 0):
            raise MethodError(f"{self.name} needs alpha in [0, 1], batch >= 1 and pad >= 0.")
        if (
            min(self.lr, self.norm_lr, self.reliable) <= 0
            or min(self.divergence, self.likeness) < 0
        ):
            raise MethodError(
                f"{self.name} needs lr, norm_lr and reliable above 0, and divergence and likeness "
                "that are not negative."
            )

    @property
    def first_pass(self) -> bool:
        """The model sees each image once: inside the border, or as it is in f0 and f1."""
        return False

    @property
    def stated_needs(self) -> str:
        """What it needs, in words."""
        return f"{self.needs} + a helper"

    def queries(self, images: int) -> dict[str, int]:
        """One query per image, none for the helper alone."""
        return {} if self.variant in WITHOUT_MODEL else {"evaluate": images}

    def check(self, images: Images | None = None) -> None:
        """Refuse a helper that cannot be used, and images that are too small for the border."""
        super().check(images)
        if images is not None and min(images.size) < 4 * max(1, self.pad):
            raise MethodError(
                f"a border of {max(1, self.pad)} pixels leaves too little of images of "
                f"{size_text(images.size)} pixels; lower pad."
            )

    def constants(self, classes: int) -> Constants:
        """The constants for so many classes."""
        from soda_tta.methods.helped.tuning import Constants

        return Constants.of(
            classes,
            share=self.reliable,
            divergence=self.divergence,
            norm_lr=self.norm_lr,
            likeness=self.likeness,
            scaled=self.scaled,
        )

    def answer(self, work: Work) -> Array:
        """Answer and learn batch by batch, in the order of the images."""
        from soda_tta.methods.helped.beta26_run import Beta26Run

        with seeded(work.seed):  # a helper may have dropout
            return Beta26Run(self, work).answers()


beta26 = Beta26()
