"""What may change an image: the paper's networks, the restoration bank, and nothing at all."""

from soda_tta.adaptors.adaptor import DEVIATION, Adaptor
from soda_tta.adaptors.bank import Bank, BankAdaptor
from soda_tta.adaptors.identity import Identity
from soda_tta.adaptors.network import NetworkAdaptor, PaperNetwork

# The adaptors that `--set adaptor=NAME` chooses from.
ADAPTORS = {"network": PaperNetwork, "bank": Bank}

__all__ = [
    "ADAPTORS",
    "DEVIATION",
    "Adaptor",
    "Bank",
    "BankAdaptor",
    "Identity",
    "NetworkAdaptor",
    "PaperNetwork",
]
