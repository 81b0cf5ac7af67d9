"""How theta moves. Pure ask/tell: a search never calls a box.

Adding a search: one file here, and one line in `SEARCHES`.
"""

from soda_tta.search.economy import EconomySearch
from soda_tta.search.economy_settings import EconomySettings
from soda_tta.search.evolution import Evolution, EvolutionSearch
from soda_tta.search.first_order import Backprop, BackpropSearch
from soda_tta.search.per_image import PerImage, PerImageSearch
from soda_tta.search.pursuit import Pursuit, PursuitSearch
from soda_tta.search.question import Question, Round
from soda_tta.search.search import Search, SearchSettings, Wants
from soda_tta.search.steps import SGD, Adam, Rule
from soda_tta.search.zeroth_order import MultiPoint, MultiPointSearch

# The searches that `--set search=NAME` chooses from: those that need probabilities only.
SEARCHES = {"multi-point": MultiPoint, "per-image": PerImage, "evolution": Evolution}

__all__ = [
    "SEARCHES",
    "SGD",
    "Adam",
    "Backprop",
    "BackpropSearch",
    "EconomySearch",
    "EconomySettings",
    "Evolution",
    "EvolutionSearch",
    "MultiPoint",
    "MultiPointSearch",
    "PerImage",
    "PerImageSearch",
    "Pursuit",
    "PursuitSearch",
    "Question",
    "Round",
    "Rule",
    "Search",
    "SearchSettings",
    "Wants",
]
