"""Deployed: the model's own answer, the yardstick of everything else."""

from soda_tta.recipes.recipe import Recipe

deployed = Recipe(name="deployed", summary="The model as it is: one query an image, nothing adapted.")
