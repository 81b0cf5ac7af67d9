"""What may change an image: the paper's networks, and nothing at all."""

from soda_tta.adaptors.adaptor import Adaptor
from soda_tta.adaptors.identity import Identity
from soda_tta.adaptors.network import NetworkAdaptor, PaperNetwork

__all__ = ["Adaptor", "Identity", "NetworkAdaptor", "PaperNetwork"]
