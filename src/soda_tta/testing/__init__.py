"""Checks for your own methods, boxes, adaptors and searches; our own go through the same.

Each raises AssertionError, with what is wrong, or returns None. They use small synthetic data and
take seconds:

>>> from soda_tta.search import MultiPoint
>>> from soda_tta.testing import check_search
>>> check_search(MultiPoint())
"""

from soda_tta.testing.adaptors import check_adaptor
from soda_tta.testing.boxes import check_box
from soda_tta.testing.methods import check_method
from soda_tta.testing.searches import check_search

__all__ = ["check_adaptor", "check_box", "check_method", "check_search"]
