"""All experiments of docs/research/reproduction.md: the paper's, then the additional ones."""

from __future__ import annotations

from additional_networks import ADDITIONAL_NETWORKS
from additional_rates import ADDITIONAL_RATES
from paper_ablations import ABLATIONS
from paper_main import MAIN_EXPERIMENTS

EXPERIMENTS = (*MAIN_EXPERIMENTS, *ABLATIONS, *ADDITIONAL_RATES, *ADDITIONAL_NETWORKS)
