"""One short file a method; this registry lists them."""

from __future__ import annotations

from soda_tta.errors import RecipeError
from soda_tta.recipes.deployed import deployed
from soda_tta.recipes.recipe import Recipe
from soda_tta.recipes.soda import soda, soda_auto

__all__ = ["Recipe", "find_method", "methods"]


def methods() -> dict[str, Recipe]:
    """Every method by name."""
    return {recipe.name: recipe for recipe in (deployed, soda, soda_auto)}


def find_method(method: str | Recipe) -> Recipe:
    """A recipe, or the one of that name."""
    if isinstance(method, Recipe):
        return method
    if method not in methods():
        raise RecipeError(f"there is no method {method!r}; choose one of {', '.join(methods())}.")
    return methods()[method]
