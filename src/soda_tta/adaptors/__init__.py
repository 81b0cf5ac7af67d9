"""What may change an image: the paper's networks, the restoration bank, one for each condition."""

from soda_tta.adaptors.adaptor import DEVIATION, Adaptor
from soda_tta.adaptors.answering import PLAIN, Answering
from soda_tta.adaptors.bank import Bank, BankAdaptor
from soda_tta.adaptors.identity import Identity
from soda_tta.adaptors.network import NetworkAdaptor, PaperNetwork
from soda_tta.adaptors.routed import RoutedAdaptor

# The adaptors that `--set adaptor=NAME` chooses from.
ADAPTORS = {"network": PaperNetwork, "bank": Bank}

__all__ = [
    "ADAPTORS",
    "DEVIATION",
    "PLAIN",
    "Adaptor",
    "Answering",
    "Bank",
    "BankAdaptor",
    "Identity",
    "NetworkAdaptor",
    "PaperNetwork",
    "RoutedAdaptor",
]
