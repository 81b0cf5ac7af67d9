"""The doctor examines a model and images before a run: is adapting worth its cost?"""

from soda_tta.doctor.examination import Examination, examine
from soda_tta.doctor.finding import Finding

__all__ = ["Examination", "Finding", "examine"]
