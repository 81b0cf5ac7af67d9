"""The paper's main tables and figures as experiments: methods compared on whole data sets.

Accuracies are in percent: means over the 19 corruptions at severity 5, measured with the paper's
ResNet-50, unless `paper` says otherwise.
"""

from __future__ import annotations

from paper_rows import Claim, Experiment, Row
from soda_tta.bench.experiments import OWN_PROTOCOL
from soda_tta.methods import all_methods

CIFAR10 = {
    "deployed": 72.39,
    "dine": 73.86,
    "beta": 75.71,
    "da-pgd": 24.63,
    "da-zoo-input": 68.70,
    "da-direct": 70.48,
    "da-pl": 72.93,
    "soda-o": 78.79,
    "soda": 82.55,
    "soda-fo": 85.97,
    "soda-r": 88.39,
    "ma-so": 86.54,
}
CIFAR100 = {"deployed": 41.41, "soda": 52.41, "soda-r": 60.31, "ma-so": 62.02}
IMAGENET = {  # gaussian noise, contrast
    "deployed": (8.98, 70.92),
    "soda": (26.72, 74.72),
    "soda-r": (40.99, 61.71),
    "ma-so": (34.85, 69.21),
}
LITE0 = "imagenet_efficientnet_lite0"
RESNET50 = "imagenet_resnet50"
METHODS_NOT_IN_PAPER = tuple(
    name for name in all_methods() if name not in CIFAR10 and name not in OWN_PROTOCOL
)
IDENTITY_START = "soda-r, identity start"  # its last layer is zero before the first step

MAIN_EXPERIMENTS = (
    Experiment(
        "cifar10",
        "CIFAR-10-C, every method (the main table)",
        (
            *(Row(name, name, {"start": None}, paper) for name, paper in CIFAR10.items()),
            Row(IDENTITY_START, "soda-r", {"start": 0.0}),
            *(Row(name, name) for name in METHODS_NOT_IN_PAPER),
        ),
        (
            Claim("SODA improves the deployed model", "soda", "deployed"),
            Claim("SODA is better than DINE", "soda", "dine"),
            Claim("SODA is better than BETA", "soda", "beta"),
            Claim("BETA is better than DINE", "beta", "dine"),
            Claim("DINE improves the deployed model", "dine", "deployed"),
            Claim("plain pseudo-labels change almost nothing", "da-pl", "deployed", equal=True),
            Claim(
                "a network that generates the whole image lowers accuracy", "deployed", "da-direct"
            ),
            Claim(
                "estimating the gradient at the images lowers accuracy", "deployed", "da-zoo-input"
            ),
            Claim("perturbations without a network (DA-PGD) fail", "da-zoo-input", "da-pgd"),
            Claim("SODA-O is worse than SODA", "soda", "soda-o"),
            Claim("SODA-O improves the deployed model", "soda-o", "deployed"),
            Claim("true gradients are better than estimated ones", "soda-fo", "soda"),
            Claim("the deeper network with Adam is better than SODA-FO", "soda-r", "soda-fo"),
            Claim("SODA-R is better than adapting the model", "soda-r", "ma-so"),
            Claim(
                "with the identity start, SODA-R is better than SODA-FO",
                IDENTITY_START,
                "soda-fo",
                additional=True,
            ),
            Claim(
                "with the identity start, SODA-R is better than adapting the model",
                IDENTITY_START,
                "ma-so",
                additional=True,
            ),
        ),
        by_corruption=True,
    ),
    Experiment(
        "cifar100",
        "CIFAR-100-C",
        (
            *(Row(name, name, paper=paper) for name, paper in CIFAR100.items()),
            Row("bn", "bn"),
            Row("tent", "tent"),
        ),
        (
            Claim("SODA improves the deployed model", "soda", "deployed"),
            Claim("SODA-R is better than SODA", "soda-r", "soda"),
            Claim("adapting the model is better than SODA-R", "ma-so", "soda-r"),
        ),
        paper="CIFAR-100-C",
        by_corruption=True,
    ),
    Experiment(
        "imagenet",
        "ImageNet-C: gaussian noise and contrast",
        (
            *(
                Row(f"{name}, {short}", name, {"start": None}, model=model, paper=sum(pair) / 2)
                for short, model in (("ResNet-50", RESNET50), ("Lite0", LITE0))
                for name, pair in IMAGENET.items()
            ),
            Row(f"{IDENTITY_START}, Lite0", "soda-r", {"start": 0.0}, model=LITE0),
            *(Row(f"{name}, Lite0", name, model=LITE0) for name in ("bn", "tent")),
        ),
        (
            Claim("SODA improves the deployed model", "soda, Lite0", "deployed, Lite0"),
            Claim("SODA-R is better than SODA on these two", "soda-r, Lite0", "soda, Lite0"),
            Claim(
                "adapting the model improves accuracy on these two",
                "ma-so, Lite0",
                "deployed, Lite0",
            ),
            Claim(
                "the identity start improves SODA-R",
                f"{IDENTITY_START}, Lite0",
                "soda-r, Lite0",
                additional=True,
            ),
            Claim(
                "with the identity start, SODA-R is better than SODA",
                f"{IDENTITY_START}, Lite0",
                "soda, Lite0",
                additional=True,
            ),
        ),
        paper="ImageNet-C, these two",
    ),
    Experiment(
        "full-scale",
        "Gaussian noise at the paper's scale: 10,000 images, 150 epochs, 9 million queries",
        (Row("soda", "soda", paper=73.18),),
        (),
        paper="gaussian noise, from 51.28",
    ),
    Experiment(
        "convergence",
        "Accuracy by epoch",
        tuple(Row(name, name) for name in ("soda", "soda-fo", "soda-r")),
        (
            Claim("SODA ends below SODA-FO", "soda-fo", "soda"),
            Claim("SODA ends below SODA-R", "soda-r", "soda"),
            Claim("SODA-R ends highest", "soda-r", "soda-fo"),
        ),
        paper="a figure",
    ),
    Experiment(
        "convergence-300",
        "Twice the epochs",
        (Row("soda, twice the epochs", "soda"),),
        (),
        paper="a figure",
    ),
    Experiment(
        "office-home",
        "The Office-Home protocol on PACS",
        (
            Row("deployed", "deployed", paper=44.67),
            Row("soda-office-home", "soda-office-home", paper=46.53),
            Row("soda-r-office-home", "soda-r-office-home", paper=50.45),
        ),
        (
            Claim("SODA improves accuracy a little", "soda-office-home", "deployed"),
            Claim(
                "SODA-R improves accuracy more than SODA", "soda-r-office-home", "soda-office-home"
            ),
        ),
        paper="Office-Home, art to clipart",
    ),
)
