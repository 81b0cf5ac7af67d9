"""Deployed: the model's own answer, the yardstick of everything else."""

from soda_tta.methods.loop_method import LoopMethod

deployed = LoopMethod(
    name="deployed", summary="The model as it is: one query per image, nothing is adapted."
)
