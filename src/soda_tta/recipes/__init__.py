"""One short file a method; this registry lists them."""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path

from soda_tta.errors import RecipeError
from soda_tta.recipes.batch_statistics import bn, tent
from soda_tta.recipes.beta import beta
from soda_tta.recipes.deployed import deployed
from soda_tta.recipes.dine import dine
from soda_tta.recipes.economy import soda_e
from soda_tta.recipes.input_space import da_pgd, da_zoo_input
from soda_tta.recipes.model_adaptation import ma_so
from soda_tta.recipes.neighbours import lame
from soda_tta.recipes.office_home import soda_office_home, soda_r_office_home
from soda_tta.recipes.online import soda_o
from soda_tta.recipes.procedure import Given, Outcome, Procedure
from soda_tta.recipes.pseudo_labels import da_direct, da_pl
from soda_tta.recipes.recipe import Recipe
from soda_tta.recipes.soda import soda, soda_auto, soda_fo, soda_r

__all__ = ["Given", "Method", "Outcome", "Procedure", "Recipe", "code_of", "find_method", "methods"]

Method = Recipe | Procedure
CODE = "__soda_tta_code__"  # where the digest of a module of the user's is kept


def methods() -> dict[str, Method]:
    """Every method by name."""
    known: tuple[Method, ...] = (
        *(deployed, soda_e, soda, soda_auto, soda_o, da_pl, da_direct, da_pgd, da_zoo_input, dine, beta, lame),
        *(soda_fo, soda_r, ma_so, bn, tent, soda_office_home, soda_r_office_home),
    )
    return {method.name: method for method in known}


def find_method(method: str | Method) -> Method:
    """A method, the one of that name, or one of the user's own as "module:name"."""
    if isinstance(method, Recipe | Procedure):
        return method
    if not isinstance(method, str):
        raise RecipeError(f"a method is a name, or a Recipe or Procedure, not {method!r}.")
    if ":" in method:
        return _own_method(method)
    if method not in methods():
        raise RecipeError(
            f"there is no method {method!r}; choose one of {', '.join(methods())}, or your own as module:name."
        )
    return methods()[method]


def code_of(method: str) -> str | None:
    """A digest of the file a method of the user's own is in; None for ours."""
    if ":" not in method:
        return None
    _own_method(method)
    module = sys.modules[_module_of(method)]
    if CODE not in vars(module):  # of what was loaded: the file may be changed while cells run
        source = getattr(module, "__file__", None)
        setattr(module, CODE, hashlib.sha256(Path(source).read_bytes()).hexdigest()[:16] if source else None)
    code: str | None = getattr(module, CODE)
    return code


def _module_of(place: str) -> str:
    """`mine.py:brighter` is another way to say `mine:brighter`."""
    return place.partition(":")[0].removesuffix(".py")


def _own_method(place: str) -> Method:
    """A method of the user's: `mine:brighter` is `brighter` of mine.py here, or of an installed module."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # a command does not look for modules in the current directory
    module, name = _module_of(place), place.partition(":")[2]
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # the file is the user's: it may raise anything
        raise RecipeError(f"the method {place!r} could not be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(found, Recipe | Procedure):
        raise RecipeError(f"{place!r} is {type(found).__name__}; a method is a Recipe or a Procedure.")
    return found
