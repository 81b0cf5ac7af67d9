"""What a deployed model expects of its pixels, found from unlabelled images."""

from soda_tta.conventions.convention import Answer, Convention
from soda_tta.conventions.find import FEWEST_IMAGES, find_convention
from soda_tta.conventions.search import MOST_QUERIES

__all__ = ["FEWEST_IMAGES", "MOST_QUERIES", "Answer", "Convention", "find_convention"]
