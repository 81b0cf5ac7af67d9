"""The conditions of images: day, night and rain in one folder, told apart by their pixels."""

from soda_tta.conditions.find import Conditions, find_conditions

__all__ = ["Conditions", "find_conditions"]
