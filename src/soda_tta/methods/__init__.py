"""One short file per method; `registry` lists them, `method` is the protocol they share."""

from soda_tta.methods.method import Method, Outcome
from soda_tta.methods.registry import all_methods, code_of, find_method

__all__ = ["Method", "Outcome", "all_methods", "code_of", "find_method"]
