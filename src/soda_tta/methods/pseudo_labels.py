"""DA-PL and DA-Direct: the paper's vanilla baselines, which trust every initial pseudo-label."""

from dataclasses import replace

from soda_tta.adaptors import PaperNetwork
from soda_tta.methods.soda import soda
from soda_tta.objectives.equations import PseudoLabels

da_pl = replace(
    soda.renamed(
        "da-pl", "SODA's adaptor and search on plain cross-entropy with all initial pseudo-labels."
    ),
    objective=PseudoLabels(),
)

da_direct = replace(
    da_pl.renamed("da-direct", "As da-pl, but the network's output is the image itself."),
    adaptor=PaperNetwork(width=64, activation="hardswish", residual=False),
)
