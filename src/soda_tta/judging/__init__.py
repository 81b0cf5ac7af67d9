"""Whether to deploy what was learned: the verdict, a certificate from labels, accuracy without."""

from soda_tta.judging.certificate import Certificate, certify
from soda_tta.judging.estimate import Estimate, NoEstimate, estimate_accuracy
from soda_tta.judging.verdict import Verdict, judge

__all__ = [
    "Certificate",
    "Estimate",
    "NoEstimate",
    "Verdict",
    "certify",
    "estimate_accuracy",
    "judge",
]
