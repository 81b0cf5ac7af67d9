"""How theta moves. Pure ask/tell: a search never calls the box."""

from soda_tta.search.evolution import Evolution, EvolutionSearch, FollowedEvolution
from soda_tta.search.first_order import Backprop, BackpropSearch
from soda_tta.search.per_image import PerImage, PerImageSearch
from soda_tta.search.pursuit import Pursuit, PursuitSearch
from soda_tta.search.steps import SGD, Adam
from soda_tta.search.zeroth_order import MultiPoint, MultiPointSearch

LoopSearch = (
    MultiPointSearch | PerImageSearch | BackpropSearch | FollowedEvolution
)  # what the loop can drive

__all__ = [
    "SGD",
    "Adam",
    "Backprop",
    "BackpropSearch",
    "Evolution",
    "EvolutionSearch",
    "FollowedEvolution",
    "LoopSearch",
    "MultiPoint",
    "MultiPointSearch",
    "PerImage",
    "PerImageSearch",
    "Pursuit",
    "PursuitSearch",
]
