"""Before a run: is this model fit for adapting, are these images in need of it, and what would it cost?"""

from soda_tta.doctor.examination import Examination, examine
from soda_tta.doctor.finding import Finding

__all__ = ["Examination", "Finding", "examine"]
