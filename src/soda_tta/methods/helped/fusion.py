"""The model's answers averaged with those of a helper that adapts to the same images."""

from __future__ import annotations

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.devices import CPU, as_array, as_tensor
from soda_tta.engine.work import Work
from soda_tta.methods.helped.beta26 import beta26
from soda_tta.methods.helped.helper import Helper
from soda_tta.methods.tools import seeded
from soda_tta.types import Array


def fused_answers(
    helper: Helper, adaptor: Adaptor, work: Work, rows: Array, weight: float
) -> Array:
    """Weighted means of the model's and the helper's answers to the adapted images.

    The helper adapts as in the control f1 of BETA-26: batch by batch, in the order of the images,
    with its settings; each answer is given before its own batch teaches anything.

    Parameters
    ----------
    rows : the model's answers to the adapted images.
    weight : of the helper's answers.
    """
    from soda_tta.methods.helped.beta26_run import batches
    from soda_tta.methods.helped.tuning import Tuning

    tuning = Tuning(helper, beta26.constants(rows.shape[1]))
    fused = np.empty_like(rows)
    with seeded(work.seed):
        for place in batches(len(rows), beta26.batch):
            work.check_stop()
            own = tuning.answers(as_tensor(adaptor(work.images[place]), CPU))
            loss = tuning.loss(own, tuning.weights_of(own))
            fused[place] = weight * as_array(own) + (1 - weight) * rows[place]
            tuning.step(loss)
    return fused
