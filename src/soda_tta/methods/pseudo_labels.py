"""DA-PL and DA-Direct: the paper's simple baselines, which trust every initial pseudo-label."""

from dataclasses import replace

from soda_tta.adaptors import PaperNetwork
from soda_tta.methods.soda import soda
from soda_tta.objectives import PseudoLabels

da_pl = replace(
    soda.renamed(
        "da-pl", "SODA's adaptor and search with cross-entropy on all initial pseudo-labels."
    ),
    objective=PseudoLabels(),
)

da_direct = replace(
    da_pl.renamed("da-direct", "Like da-pl, but the network's output is the image itself."),
    adaptor=PaperNetwork(width=64, activation="hardswish", residual=False),
    other_meanings={
        "start": "factor of the last layer's random weights; 0 begins with grey images",
        "deviation": "deviation of the data's pixels: how far from grey a pixel may be",
    },
)
