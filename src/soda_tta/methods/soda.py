"""SODA: train the data adaptor from probabilities alone (paper, Algorithm 1)."""

from dataclasses import replace

from soda_tta.adaptors import PaperNetwork
from soda_tta.methods.loop_method import LoopMethod
from soda_tta.objectives import Reliable, Soda
from soda_tta.search import SGD, Adam, Backprop, MultiPoint

soda = LoopMethod(
    name="soda",
    summary="The paper's SODA with its settings for CIFAR-10-C.",
    adaptor=PaperNetwork(width=64, activation="hardswish"),
    reliable=Reliable(tau=0.9, rho=0.9),  # section 3.3
    objective=Soda(alpha=1e-4),  # Eq. 13
    search=MultiPoint(directions=5, mu=1e-3, sigma=0.1),  # Eq. 1; sigma as in the released code
    step=SGD(lr=1e-3, momentum=0.9, weight_decay=1e-5),
    epochs=150,
    batch=256,
)

# The paper's lr belongs to its 6,000 steps. With fewer images there are fewer steps, and the
# adaptor hardly moves.
soda_auto = soda.but(lr="auto").renamed(
    "soda-auto", "SODA with its learning rate chosen without labels."
)

soda_fo = replace(
    soda.renamed("soda-fo", "White box: SODA with true gradients through the model."),
    needs="gradients",
    search=Backprop(),
)

soda_r = replace(
    soda.renamed(
        "soda-r",
        "White box: true gradients, a deeper adaptor with dropout, Adam, a penalty on the norm.",
    ),
    needs="gradients",
    adaptor=PaperNetwork(width=64, blocks=2, dropout=0.5, activation="relu"),
    objective=Soda(alpha=1e-4, beta=0.005),  # Eq. 17; 0.01 for CIFAR-100-C
    search=Backprop(),
    step=Adam(lr=1e-3, weight_decay=1e-5),
)
