"""One short file a method; this registry lists them."""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path

from soda_tta.errors import MethodError
from soda_tta.methods.deployed import deployed
from soda_tta.methods.distillation.beta import beta
from soda_tta.methods.distillation.dine import dine
from soda_tta.methods.economy import soda_e
from soda_tta.methods.input_space import da_pgd, da_zoo_input
from soda_tta.methods.loop_method import LoopMethod
from soda_tta.methods.method import Method, Outcome, Work
from soda_tta.methods.neighbours import lame
from soda_tta.methods.office_home import soda_office_home, soda_r_office_home
from soda_tta.methods.online import soda_o
from soda_tta.methods.pseudo_labels import da_direct, da_pl
from soda_tta.methods.soda import soda, soda_auto, soda_fo, soda_r
from soda_tta.methods.yardsticks.batch_statistics import bn, tent
from soda_tta.methods.yardsticks.model_adaptation import ma_so

__all__ = ["LoopMethod", "Method", "Outcome", "Work", "all_methods", "code_of", "find_method"]

CODE = "__soda_tta_code__"  # where the digest of a module of the user's is kept


def all_methods() -> dict[str, Method]:
    """Every method by name."""
    known: tuple[Method, ...] = (
        *(
            deployed,
            soda_e,
            soda,
            soda_auto,
            soda_o,
            da_pl,
            da_direct,
            da_pgd,
            da_zoo_input,
            dine,
            beta,
            lame,
        ),
        *(soda_fo, soda_r, ma_so, bn, tent, soda_office_home, soda_r_office_home),
    )
    return {method.name: method for method in known}


def find_method(method: str | Method) -> Method:
    """A method, the one of that name, or one of the user's own as "module:name"."""
    if isinstance(method, LoopMethod | Method):
        return method
    if not isinstance(method, str):
        raise MethodError(f"a method is a name, or a LoopMethod or Method, not {method!r}.")
    if ":" in method:
        return _own_method(method)
    if method not in all_methods():
        raise MethodError(
            f"there is no method {method!r}; choose one of {', '.join(all_methods())}, or your own as module:name."
        )
    return all_methods()[method]


def code_of(method: str) -> str | None:
    """A digest of the file a method of the user's own is in; None for ours."""
    if ":" not in method:
        return None
    _own_method(method)
    module = sys.modules[_module_of(method)]
    if CODE not in vars(module):  # of what was loaded: the file may be changed while cells run
        source = getattr(module, "__file__", None)
        setattr(
            module,
            CODE,
            hashlib.sha256(Path(source).read_bytes()).hexdigest()[:16] if source else None,
        )
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
        raise MethodError(
            f"the method {place!r} could not be loaded: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, LoopMethod | Method):
        raise MethodError(
            f"{place!r} is {type(found).__name__}; a method is a LoopMethod or a Method."
        )
    return found
