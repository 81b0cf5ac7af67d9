"""What a deployed model expects of its pixels, found from unlabelled images."""

from soda_tta.conventions.convention import Answer, Convention
from soda_tta.conventions.find import FEWEST_IMAGES, MOST_QUERIES, find_convention

__all__ = ["FEWEST_IMAGES", "MOST_QUERIES", "Answer", "Convention", "find_convention"]
