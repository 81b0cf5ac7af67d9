"""Every method by name.

Methods are named here, not imported: the engine looks a method up without depending on it. Adding a
method: one file, and one line in `PLACES`.
"""

from __future__ import annotations

from soda_tta.errors import MethodError
from soda_tta.methods.method import Method
from soda_tta.user_code import load_object, load_own, source_digest

PLACES = {
    "deployed": "soda_tta.methods.deployed:deployed",
    "soda-e": "soda_tta.methods.economy:soda_e",
    "soda": "soda_tta.methods.soda:soda",
    "soda-auto": "soda_tta.methods.soda:soda_auto",
    "soda-o": "soda_tta.methods.online:soda_o",
    "da-pl": "soda_tta.methods.pseudo_labels:da_pl",
    "da-direct": "soda_tta.methods.pseudo_labels:da_direct",
    "da-pgd": "soda_tta.methods.input_space:da_pgd",
    "da-zoo-input": "soda_tta.methods.input_space:da_zoo_input",
    "dine": "soda_tta.methods.distillation.dine:dine",
    "beta": "soda_tta.methods.distillation.beta:beta",
    "tta": "soda_tta.methods.augmentation:tta",
    "zero": "soda_tta.methods.augmentation:zero",
    "beta26": "soda_tta.methods.helped.beta26:beta26",
    "lame": "soda_tta.methods.neighbours:lame",
    "soda-fo": "soda_tta.methods.soda:soda_fo",
    "soda-r": "soda_tta.methods.soda:soda_r",
    "ma-so": "soda_tta.methods.yardsticks.model_adaptation:ma_so",
    "bn": "soda_tta.methods.yardsticks.batch_statistics:bn",
    "tent": "soda_tta.methods.yardsticks.batch_statistics:tent",
    "soda-office-home": "soda_tta.methods.office_home:soda_office_home",
    "soda-r-office-home": "soda_tta.methods.office_home:soda_r_office_home",
}


def all_methods() -> dict[str, Method]:
    """Every built-in method by name.

    >>> list(all_methods())[:3]
    ['deployed', 'soda-e', 'soda']
    """
    return {name: find_method(name) for name in PLACES}


def find_method(method: str | Method) -> Method:
    """Look a method up.

    Parameters
    ----------
    method : a built-in name such as "soda-e"; your own as "package.module:name" or "file.py:name";
        or a Method, which is returned as it is.

    Examples
    --------
    >>> find_method("soda").but(q=10).settings["directions"]
    10
    """
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        raise MethodError(f"{method!r} is not a method; give a name or a Method.")
    if ":" not in method and method not in PLACES:
        raise MethodError(
            f"there is no method {method!r}; choose one of {', '.join(PLACES)}, "
            "or your own as file.py:name."
        )
    if method in PLACES:
        built_in: Method = load_own(PLACES[method])
        return built_in
    found = load_object(method, kind="method", error_class=MethodError)
    if isinstance(found, type) and issubclass(found, Method):
        name = found.__name__
        raise MethodError(
            f"{method!r} is a class; write `{name.lower()} = {name}()` in the file and name that."
        )
    if not isinstance(found, Method):
        raise MethodError(f"{method!r} is a {type(found).__name__}; a method is a Method.")
    return found


def code_of(method: str) -> str | None:
    """A digest of the file that holds a user's own method; None for built-in methods."""
    if ":" not in method:
        return None
    find_method(method)
    return source_digest(method) or None
