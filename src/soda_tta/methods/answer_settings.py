"""Settings for how responses become answers: a stated class prior, and further views."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

from soda_tta.engine.stated_prior import UNKNOWN, shares_of, stated_prior
from soda_tta.engine.work import Work
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method
from soda_tta.settings import setting
from soda_tta.types import Array

CHECKED = 256  # images on which a mirror image is compared with a shifted one
VIEW_COUNTS = ("1", "2", "3", "auto")

Self = TypeVar("Self", bound="AnswerSettings")


@dataclass(frozen=True, kw_only=True)
class AnswerSettings(Method):
    """A method whose answers can be matched to a stated class prior and averaged over views."""

    prior: str = setting(
        "unknown",
        "how frequent the classes are, if that is known: balanced, shares such as 0.7,0.2,0.1, a "
        "file of them, or a run on images from before the shift",
    )
    views: str = setting(
        "1",
        "views that each answer is the mean over: 1, 2 (the mirror image, if it is recognised as "
        "well), 3 (a shifted image), or auto (2 where the budget has room)",
    )
    average: bool = setting(
        False, "answer with the mean of the probabilities of the image and of the adapted image"
    )

    def check_answers(self) -> None:
        """Raise an error for settings that are impossible."""
        if self.views not in VIEW_COUNTS:
            raise MethodError(
                f"views={self.views} is not valid; give one of {', '.join(VIEW_COUNTS)}."
            )
        if self.average and (self.views != "1" or self.prior != UNKNOWN):
            raise MethodError(
                "average=True cannot be combined with prior or views; leave out one of them."
            )

    def but(self: Self, **settings: Any) -> Self:
        """The same method with other settings.

        A number of views may be an integer. A prior may also be a list of shares, a file or a run,
        see `engine/stated_prior.py`.
        """
        if "views" in settings:
            settings["views"] = str(settings["views"])
        if "prior" in settings:
            settings["prior"] = stated_prior(settings["prior"])
        return super().but(**settings)

    @abstractmethod
    def views_within(self, images: int, limit: int | None) -> int:
        """Views per answer."""

    def answers_of(self, work: Work) -> int:
        """The queries that answer all images in the end."""
        count = len(work.images)
        return count * self.views_within(count, work.meter.limit)

    def shares(self, work: Work) -> Array | None:
        """The stated share of each class; None if nothing was stated."""
        return self.class_shares(work.before.shape[1])

    def class_shares(self, classes: int) -> Array | None:
        """The same for a model with so many classes."""
        return shares_of(self.prior, classes)

    def views_without_search(self, images: int, limit: int | None) -> dict[str, int]:
        """The queries for further views of images that are not adapted, if they are affordable."""
        more = (self.views_within(images, limit) - 1) * images
        checked = min(images, CHECKED)  # shifted, to compare the mirror images with
        affordable = limit is None or limit >= images + more + checked
        return {"view": more + checked} if more and affordable else {}
