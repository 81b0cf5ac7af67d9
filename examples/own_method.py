"""Your own method: one frozen dataclass, usable everywhere a built-in method is.

    python examples/own_method.py
    soda-tta adapt --method examples/own_method.py:brighten ... --set steps=9
    soda-tta methods examples/own_method.py:brighten

It tries a few brightness factors and keeps the one whose responses share the most information with
the images. `soda_tta.testing.check_method` says whether it keeps the contract of a method.
"""

# %% [markdown]
# ## The method
#
# A method is a frozen dataclass; its fields are its settings. `queries` says what it will cost,
# before anything is spent. `answer` does the work.

# %%
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta import MethodError, adapt
from soda_tta.engine.events import Step
from soda_tta.engine.work import Work
from soda_tta.methods import Method
from soda_tta.objectives import mutual_information
from soda_tta.settings import setting
from soda_tta.testing import check_method
from soda_tta.testing.data import make_black_box, make_images
from soda_tta.types import Array


@dataclass(frozen=True, kw_only=True)
class Brighten(Method):
    """Multiply all images by one factor, chosen without labels."""

    name: str = "brighten"
    summary: str = "One brightness factor for all images, chosen by mutual information."
    steps: int = setting(5, "factors that are tried")
    largest: float = setting(3.0, "largest factor that is tried")

    def __post_init__(self) -> None:
        if self.steps < 1 or self.largest <= 1:
            raise MethodError(f"{self.name} needs steps >= 1 and largest > 1.")

    def queries(self, images: int) -> dict[str, int]:
        """Every factor is tried on every image. The plan and the budget rely on this."""
        return {"probe": images * self.steps}

    def answer(self, work: Work) -> Array:
        """The probabilities to use, one row per image."""
        images = work.images[:]
        candidates = [work.before]
        for number in range(1, self.steps + 1):
            factor = 1 + (self.largest - 1) * number / self.steps
            brighter = np.clip(images * np.float32(factor), 0, 1)
            candidates.append(work.box(brighter))  # counted as "probe", within the budget
            information = mutual_information(candidates[-1])
            work.record(  # a line of the history; Ctrl-C is noticed here
                Step(
                    epoch=number,
                    step=1,
                    of=1,
                    lr=factor,
                    purpose="probe",
                    queries=len(images),
                    losses=(-information,),
                    mutual_information=information,
                    cross_entropy=0.0,
                )
            )
        return max(candidates, key=mutual_information)


brighten = Brighten()

# %% [markdown]
# ## Check it and use it
#
# `check_method` runs it in the ways in which a run can go wrong: a small budget, an interruption,
# a crash. After that it is a method like any other.

# %%
if __name__ == "__main__":
    check_method(brighten)
    run = adapt(0.4 * make_images(), make_black_box(), method=brighten, steps=4)
    print(f"{run}\n{run.reason}")
