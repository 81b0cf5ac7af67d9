"""The settings of BETA."""

from __future__ import annotations

from dataclasses import dataclass

from soda_tta.errors import MethodError
from soda_tta.methods.distillation.distillation import Distillation
from soda_tta.settings import setting


@dataclass(frozen=True, kw_only=True)
class BetaSettings(Distillation):
    """What BETA adds to the settings of a distillation."""

    threshold: float = setting(0.8, "trust from which a label counts as easy")
    temperature: float = setting(0.5, "of sharpening: a lower one makes labels more confident")
    alpha: float = setting(1.0, "parameter of the beta distribution of MixMatch's shares")
    lam_p: float = setting(1.0, "weight of the even prior over the classes")
    lam_u: float = setting(0.0, "weight of the squared error on hard images")
    rampup: int = setting(16, "epochs until lam_u has its full weight")
    adversarial: float = setting(0.0, "weight of the adversarial term; 0.1 in its paper")
    warmup: int = setting(0, "first epochs, with cross-entropy on the pseudo-labels only")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.threshold <= 1 or self.temperature <= 0 or self.alpha <= 0:
            raise MethodError("beta needs threshold in (0, 1], and temperature and alpha above 0.")
        if min(self.lam_p, self.lam_u, self.rampup, self.adversarial, self.warmup) < 0:
            raise MethodError("beta needs weights and epochs that are not negative.")
