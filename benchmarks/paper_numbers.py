"""The paper's experiments as rows to be laid beside ours: a name, the cells that measure it, the number it prints.

Accuracies in %: means over the 19 corruptions at severity 5 unless the title says otherwise, of the paper's ResNet-50.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from soda_tta.bench.experiments import ORDERED, OWN_PROTOCOL, STARTED, STARTS
from soda_tta.methods import all_methods
from soda_tta.methods.loop_method import LEARNING_RATES


@dataclass(frozen=True)
class Row:
    """One line of a table: the cells of a method with these settings (and of this model, if the grid has several)."""

    name: str
    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    paper: float | None = None
    model: str | None = None
    images: int | None = None
    order: str | None = None
    least_loss: bool = (
        False  # of these, one for each corruption: the one with the least loss at the end
    )
    averaged: bool = False  # over everything else that the grid varies


@dataclass(frozen=True)
class Claim:
    """What the paper says of two rows: the first is better, or both are alike."""

    sentence: str
    first: str
    second: str
    alike: bool = False
    ours: bool = False  # said by nobody but us


@dataclass(frozen=True)
class Experiment:
    """A grid, its rows and what the paper says of them."""

    grid: str
    title: str
    rows: tuple[Row, ...]
    claims: tuple[Claim, ...]
    paper: str = "CIFAR-10-C"  # what its settings are of
    full: bool = False  # show the table by corruption, too
    gain: bool = False  # compare what was gained: the rows begin from different accuracies


def varied(method: str, name: str, settings: dict[Any, float | None]) -> tuple[Row, ...]:
    """A row a value of one number."""
    return tuple(
        Row(f"{method}, {name} {value}", method, {name: value}, paper)
        for value, paper in settings.items()
    )


C10 = {
    "deployed": 72.39,
    "dine": 73.86,
    "beta": 75.71,
    "da-pgd": 24.63,
    "da-zoo-input": 68.70,
    "da-direct": 70.48,
}
C10 |= {
    "da-pl": 72.93,
    "soda-o": 78.79,
    "soda": 82.55,
    "soda-fo": 85.97,
    "soda-r": 88.39,
    "ma-so": 86.54,
}
C100 = {"deployed": 41.41, "soda": 52.41, "soda-r": 60.31, "ma-so": 62.02}
IMAGENET = {
    "deployed": (8.98, 70.92),
    "soda": (26.72, 74.72),
    "soda-r": (40.99, 61.71),
    "ma-so": (34.85, 69.21),
}
LITE, RESNET = "imagenet_efficientnet_lite0", "imagenet_resnet50"
OURS = tuple(
    name for name in all_methods() if name not in C10 and name not in OWN_PROTOCOL
)  # what the paper lacks

BEGUN = "soda-r, from the images as they are"
USUAL, SPREAD, LONG, BOTH = (
    f"{{}}, {images} images, {epochs} epochs"
    for images, epochs in (("500", 30), ("2,000", 8), ("500", 120), ("2,000", 30))
)
EVERY_RATE = dict.fromkeys(LEARNING_RATES[::-1])
PEERS = (
    ("dine", "dine", {"target": None}),
    ("beta", "beta", {"adversarial": 0.0}),
    ("beta with an adversary", "beta", {"adversarial": 0.1}),
)
BEGINNINGS = {
    "a ResNet-20 of CIFAR-100": "cifar100_resnet20",
    "ImageNet's ResNet-50": "imagenet_resnet50",
}
OTHER_CLASSES, IMAGENETS = (f"{{}}, from {told}" for told in BEGINNINGS)
# epochs of the second stage; on a desk 6, in the paper's size 30
STAGES = ((0, "distilled", None), (6, "fine-tuned", 500), (30, "fine-tuned for 30 epochs", 10_000))

# q, epochs and lr: as many queries each
SPLITS = (
    (1, 90, 0.03),
    (1, 90, 0.01),
    (2, 60, 0.03),
    (2, 60, 0.01),
    (5, 30, 0.03),
    (8, 20, 0.03),
    (17, 10, 0.03),
)
FIVE_DIRECTIONS, TWO = "q 5, 30 epochs, lr 0.03", "q 2, 60 epochs, lr {}"
SELECTION = {"tau": (0.1, 0.5, 0.9), "rho": (0.1, 0.5, 0.9), "alpha": (1e-4, 1e-3, 1e-2)}
OTHERS = "{} {:g}, mean of the others"
CORNER = "tau {} and rho {}, mean of the alphas"
NO_SUCH = "no such experiment"

EXPERIMENTS = (
    Experiment(
        "cifar10",
        "CIFAR-10-C, every method (the main table)",
        (
            *(Row(name, name, {"start": None}, paper) for name, paper in C10.items()),
            Row(BEGUN, "soda-r", {"start": 0.0}),
            *(Row(name, name) for name in OURS),
        ),
        (
            Claim("SODA improves the deployed model", "soda", "deployed"),
            Claim("SODA beats DINE", "soda", "dine"),
            Claim("SODA beats BETA", "soda", "beta"),
            Claim("BETA beats DINE", "beta", "dine"),
            Claim("DINE improves the deployed model", "dine", "deployed"),
            Claim("plain pseudo-labels bring almost nothing", "da-pl", "deployed", alike=True),
            Claim("a network that paints the whole image harms", "deployed", "da-direct"),
            Claim("estimating the gradient at the images harms", "deployed", "da-zoo-input"),
            Claim("perturbations without a network fail", "da-zoo-input", "da-pgd"),
            Claim("online lies between deployed and SODA", "soda", "soda-o"),
            Claim("online improves the deployed model", "soda-o", "deployed"),
            Claim("true gradients beat estimated ones", "soda-fo", "soda"),
            Claim("the deeper network with Adam beats SODA-FO", "soda-r", "soda-fo"),
            Claim("SODA-R beats adapting the model", "soda-r", "ma-so"),
            Claim(
                "from the images as they are the deeper network beats SODA-FO",
                BEGUN,
                "soda-fo",
                ours=True,
            ),
            Claim(
                "from the images as they are SODA-R beats adapting the model",
                BEGUN,
                "ma-so",
                ours=True,
            ),
        ),
        full=True,
    ),
    Experiment(
        "cifar100",
        "CIFAR-100-C",
        (
            *(Row(name, name, paper=paper) for name, paper in C100.items()),
            Row("bn", "bn"),
            Row("tent", "tent"),
        ),
        (
            Claim("SODA improves the deployed model", "soda", "deployed"),
            Claim("SODA-R beats SODA", "soda-r", "soda"),
            Claim("adapting the model beats SODA-R here", "ma-so", "soda-r"),
        ),
        paper="CIFAR-100-C",
        full=True,
    ),
    Experiment(
        "imagenet",
        "ImageNet-C: gaussian noise and contrast",
        (
            *(
                Row(f"{name}, {model}", name, {"start": None}, model=stored, paper=sum(both) / 2)
                for model, stored in (("ResNet-50", RESNET), ("Lite0", LITE))
                for name, both in IMAGENET.items()
            ),
            Row(f"{BEGUN}, Lite0", "soda-r", {"start": 0.0}, model=LITE),
            *(Row(f"{name}, Lite0", name, model=LITE) for name in ("bn", "tent")),
        ),
        (
            Claim("SODA improves the deployed model", "soda, Lite0", "deployed, Lite0"),
            Claim("SODA-R beats SODA on these two", "soda-r, Lite0", "soda, Lite0"),
            Claim("adapting the model improves it on these two", "ma-so, Lite0", "deployed, Lite0"),
            Claim(
                "from the images as they are it does better",
                f"{BEGUN}, Lite0",
                "soda-r, Lite0",
                ours=True,
            ),
            Claim("and beats SODA", f"{BEGUN}, Lite0", "soda, Lite0", ours=True),
        ),
        paper="ImageNet-C, these two",
    ),
    Experiment(
        "yardstick",
        "The paper's own budget: 150 epochs, 900 queries an image, 1,000 images",
        (
            Row("soda, the paper's lr", "soda", {"lr": None}),
            Row(
                "soda, the rate of those run with the least loss at the end",
                "soda",
                least_loss=True,
            ),
        ),
        (
            Claim(
                "on 1,000 images a larger lr is better",
                "soda, the rate of those run with the least loss at the end",
                "soda, the paper's lr",
            ),
        ),
        paper=NO_SUCH,
        full=True,
    ),
    Experiment(
        "rates",
        "Ours: every rate that lr=auto chooses from",
        (
            *varied("soda", "lr", dict.fromkeys(("auto", *EVERY_RATE))),
            *(
                row
                for name in ("soda-fo", "soda-o", "da-zoo-input")
                for row in varied(name, "lr", EVERY_RATE)
            ),
        ),
        (Claim("the chosen rate is as good as any", "soda, lr auto", "soda, lr 0.03", alike=True),),
        paper=NO_SUCH,
    ),
    Experiment(
        "rates-kept",
        "Ours: the rates of soda-r and ma-so",
        (
            *varied("soda-r", "lr", dict.fromkeys((0.01, 0.003, 0.001, 0.0003))),
            *varied("ma-so", "lr", dict.fromkeys((0.01, 0.001))),
        ),
        (
            Claim(
                "ten times the rate does ma-so no good",
                "ma-so, lr 0.01",
                "ma-so, lr 0.001",
                alike=True,
            ),
        ),
        paper=NO_SUCH,
    ),
    Experiment(
        "rates-cifar100",
        "Ours: another rate for CIFAR-100",
        varied("soda", "lr", dict.fromkeys((0.03, 0.01))),
        (),
        paper=NO_SUCH,
    ),
    Experiment(
        "full-scale",
        "Gaussian noise in the paper's size: 10,000 images, 150 epochs, 9 million queries",
        (Row("soda", "soda", paper=73.18),),
        (),
        paper="gaussian noise, from 51.28",
    ),
    Experiment(
        "queries",
        "Number of directions",
        (
            *varied("soda", "q", {2: 82.43, 5: 82.55, 10: 82.57, 20: 82.59, 50: 82.53}),
            Row("soda-fo", "soda-fo", paper=85.97),
        ),
        (
            Claim(
                "two directions are nearly as good as five", "soda, q 5", "soda, q 2", alike=True
            ),
            Claim("twenty bring nothing over five", "soda, q 20", "soda, q 5", alike=True),
            Claim("the true gradient is better than any of them", "soda-fo", "soda, q 20"),
        ),
    ),
    Experiment(
        "blocks",
        "Residual blocks in the adaptor",
        (
            *varied("soda", "blocks", {0: 82.55, 1: 81.91, 2: 80.56, 3: 78.65}),
            *varied("soda-r", "blocks", {0: 86.07, 1: 88.07, 2: 88.39, 3: 88.51}),
        ),
        (
            Claim("blocks harm SODA", "soda, blocks 0", "soda, blocks 3"),
            Claim("blocks help SODA-R", "soda-r, blocks 2", "soda-r, blocks 0"),
        ),
    ),
    Experiment(
        "blocks-start",
        "Ours: residual blocks from the images as they are",
        tuple(
            row
            for name in ("soda", "soda-r")
            for row in varied(name, "blocks", dict.fromkeys((0, 1, 2, 3)))
        ),
        (
            Claim("blocks harm SODA from there, too", "soda, blocks 0", "soda, blocks 2"),
            Claim("blocks help SODA-R from there", "soda-r, blocks 2", "soda-r, blocks 0"),
        ),
        paper=NO_SUCH,
    ),
    Experiment(
        "steps",
        "Ours: the same queries in more steps, or in fewer",
        tuple(
            Row(f"q {q}, {epochs} epochs, lr {lr}", "soda", {"q": q, "epochs": epochs, "lr": lr})
            for q, epochs, lr in SPLITS
        ),
        (
            Claim(
                "at the rate of five directions two in twice the steps are worse",
                FIVE_DIRECTIONS,
                TWO.format(0.03),
            ),
            Claim(
                "at a smaller rate they are as good", TWO.format(0.01), FIVE_DIRECTIONS, alike=True
            ),
            Claim(
                "and so is one in three times the steps",
                "q 1, 90 epochs, lr 0.01",
                FIVE_DIRECTIONS,
                alike=True,
            ),
            Claim(
                "many directions in few steps are worse",
                FIVE_DIRECTIONS,
                "q 17, 10 epochs, lr 0.03",
            ),
        ),
        paper=NO_SUCH,
    ),
    Experiment(
        "points",
        "Number of test images: points gained (the paper prints a figure)",
        tuple(
            Row(f"{count:,} images", "soda", images=count)
            for count in (50, 100, 500, 1000, 5000, 10_000)
        ),
        (
            Claim("more images are better", "1,000 images", "100 images"),
            Claim("and 500 better than 50", "500 images", "50 images"),
        ),
        gain=True,
    ),
    Experiment(
        "online-epochs",
        "SODA-O: epochs a batch of 256",
        varied(
            "soda-o", "epochs", {5: 75.22, 10: 77.03, 30: 79.63, 50: 80.38, 100: 81.33, 150: 81.71}
        ),
        (
            Claim("30 epochs beat 5", "soda-o, epochs 30", "soda-o, epochs 5"),
            Claim("50 beat 10", "soda-o, epochs 50", "soda-o, epochs 10"),
        ),
    ),
    Experiment(
        "online-batch",
        "SODA-O: images a batch, 10 epochs",
        (
            *(
                Row(
                    f"soda-o, arrival {size}",
                    "soda-o",
                    {"arrival": size, "lr": (None, 0.03)},
                    paper,
                )
                for size, paper in {32: 78.01, 64: 78.66, 128: 78.79, 256: 77.03}.items()
            ),
            Row("soda-o, arrival 32, lr 0.01", "soda-o", {"arrival": 32, "lr": 0.01}),
        ),
        (
            Claim(
                "it hardly depends on the batch",
                "soda-o, arrival 128",
                "soda-o, arrival 32",
                alike=True,
            ),
            Claim(
                "a smaller rate mends the smallest",
                "soda-o, arrival 32, lr 0.01",
                "soda-o, arrival 32",
                ours=True,
            ),
            Claim(
                "and then they are alike",
                "soda-o, arrival 128",
                "soda-o, arrival 32, lr 0.01",
                True,
                ours=True,
            ),
        ),
    ),
    Experiment(
        "online-queue",
        "SODA-O: images in the queue (a desk run has a tenth of each)",
        (
            *varied("soda-o", "queue", {500: 78.78, 1000: 78.79, 2000: 78.22, 3000: 77.73}),
            *(
                Row(f"soda-o, queue {size // 10}", "soda-o", {"queue": size // 10}, paper)
                for size, paper in {500: 78.78, 1000: 78.79, 2000: 78.22, 3000: 77.73}.items()
            ),
        ),
        (
            Claim(
                "it hardly depends on the queue",
                "soda-o, queue 100",
                "soda-o, queue 300",
                alike=True,
            ),
        ),
    ),
    Experiment(
        "selection",
        "tau x rho x alpha",
        (
            *(
                Row(
                    f"tau {tau}, rho {rho}, alpha {alpha:g}",
                    "soda",
                    {"tau": tau, "rho": rho, "alpha": alpha},
                )
                for alpha in (1e-4, 1e-3, 1e-2)
                for tau in (0.1, 0.5, 0.9)
                for rho in (0.1, 0.5, 0.9)
            ),
            *(
                Row(OTHERS.format(name, value), "soda", {name: value}, averaged=True)
                for name, values in SELECTION.items()
                for value in values
            ),
            *(
                Row(CORNER.format(v, v), "soda", {"tau": v, "rho": v}, averaged=True)
                for v in (0.1, 0.9)
            ),
        ),
        (
            *(
                Claim(
                    f"it hardly depends on {name}",
                    OTHERS.format(name, low),
                    OTHERS.format(name, high),
                    alike=True,
                )
                for name, (low, _, high) in SELECTION.items()
            ),
            Claim(
                "small tau and rho are a little better",
                CORNER.format(0.1, 0.1),
                CORNER.format(0.9, 0.9),
            ),
        ),
        paper="a heat map",
    ),
    Experiment(
        "deeper",
        "Ours: does the deeper network of SODA-R want more images, or more steps?",
        tuple(
            Row(
                f"{name}, {images:,} images, {epochs} epochs",
                name,
                {"epochs": epochs},
                images=images,
            )
            for name in ("soda-fo", "soda-r")
            for images, epochs in ((500, 30), (2000, 8), (500, 120), (2000, 30))
        ),
        (
            Claim(
                "more images in as many steps help SODA-R",
                SPREAD.format("soda-r"),
                USUAL.format("soda-r"),
            ),
            Claim("more steps help SODA-R", LONG.format("soda-r"), USUAL.format("soda-r")),
            Claim(
                "for as many steps, more images help SODA-R",
                BOTH.format("soda-r"),
                LONG.format("soda-r"),
            ),
            Claim(
                "with more steps SODA-R passes SODA-FO",
                LONG.format("soda-r"),
                LONG.format("soda-fo"),
            ),
            Claim(
                "with more of both SODA-R passes SODA-FO",
                BOTH.format("soda-r"),
                BOTH.format("soda-fo"),
            ),
        ),
        paper=NO_SUCH,
    ),
    Experiment(
        "deeper-contrast",
        "Ours: the same on contrast",
        tuple(
            Row(size.format(name), name, images=images)
            for name in ("soda-fo", "soda-r")
            for size, images in ((USUAL, 500), (BOTH, 2000))
        ),
        (
            Claim("more of both help SODA-R", BOTH.format("soda-r"), USUAL.format("soda-r")),
            Claim(
                "with more of both SODA-R passes SODA-FO",
                BOTH.format("soda-r"),
                BOTH.format("soda-fo"),
            ),
        ),
        paper=NO_SUCH,
    ),
    Experiment(
        "start",
        "Ours: what a random start costs",
        (
            *(row for name in STARTED for row in varied(name, "start", dict.fromkeys(STARTS))),
            Row("ma-so", "ma-so"),
        ),
        (
            *(
                Claim(
                    f"{name.upper()} wants to begin with the images as they are",
                    f"{name}, start 0.0",
                    f"{name}, start 1.0",
                )
                for name in STARTED
            ),
            Claim(
                "from there true gradients beat estimated ones",
                "soda-fo, start 0.0",
                "soda, start 0.0",
            ),
            Claim("from there SODA-R beats SODA-FO", "soda-r, start 0.0", "soda-fo, start 0.0"),
            Claim("from there SODA-R beats SODA", "soda-r, start 0.0", "soda, start 0.0"),
            Claim("from there SODA-R beats adapting the model", "soda-r, start 0.0", "ma-so"),
        ),
        paper=NO_SUCH,
    ),
    Experiment(
        "start-cifar100",
        "Ours: the start on CIFAR-100",
        (
            *(
                row
                for name in ("soda", "soda-r")
                for row in varied(name, "start", dict.fromkeys(STARTS))
            ),
            Row("ma-so", "ma-so"),
        ),
        (
            Claim(
                "SODA wants to begin with the images as they are",
                "soda, start 0.0",
                "soda, start 1.0",
            ),
            Claim(
                "SODA-R wants to begin with the images as they are",
                "soda-r, start 0.0",
                "soda-r, start 1.0",
            ),
            Claim("from there SODA-R beats SODA", "soda-r, start 0.0", "soda, start 0.0"),
            Claim("and adapting the model beats SODA-R", "ma-so", "soda-r, start 0.0"),
        ),
        paper=NO_SUCH,
    ),
    Experiment(
        "regularisation",
        "Norm of the perturbation",
        (
            *varied("soda", "beta", {0.0: 82.55, 0.005: 73.40}),
            *varied("soda-r", "beta", {0.0: 87.96, 0.005: 88.39}),
        ),
        (
            Claim("it harms SODA", "soda, beta 0.0", "soda, beta 0.005"),
            Claim("it helps SODA-R a little", "soda-r, beta 0.005", "soda-r, beta 0.0"),
        ),
    ),
    Experiment(
        "optimisers",
        "SGD and Adam",
        (
            *varied("soda", "step", {"sgd": 82.55, "adam": 82.75}),
            *varied("soda-r", "step", {"sgd": 84.95, "adam": 88.39}),
        ),
        (
            Claim("for SODA they are alike", "soda, step adam", "soda, step sgd", alike=True),
            Claim("for SODA-R Adam is better", "soda-r, step adam", "soda-r, step sgd"),
        ),
    ),
    Experiment(
        "dropout",
        "Dropout, two residual blocks",
        (
            *varied("soda", "dropout", {0.0: 80.56, 0.5: 32.19}),
            *varied("soda-r", "dropout", {0.0: 87.54, 0.5: 88.39}),
        ),
        (
            Claim("it harms SODA", "soda, dropout 0.0", "soda, dropout 0.5"),
            Claim("it helps SODA-R a little", "soda-r, dropout 0.5", "soda-r, dropout 0.0"),
        ),
    ),
    Experiment(
        "peers",
        "DINE and BETA, stage by stage",
        tuple(
            Row(f"{name}, {told}", method, {"finetune_epochs": epochs, **more}, images=images)
            for name, method, more in PEERS
            for epochs, told, images in STAGES
            if epochs or not more.get("adversarial")
        )
        + tuple(
            Row(f"dine, {told}", "dine", {"target": None, **settings}, images=images)
            for told, settings, images in (
                ("five times the epochs", {"finetune_epochs": 30}, 500),
                ("four times the images", {"finetune_epochs": 6}, 2000),
            )
        )
        + tuple(
            Row(f"{name}, from {told}", name, {"target": target})
            for told, target in BEGINNINGS.items()
            for name in ("dine", "beta")
        )
        + (Row("deployed", "deployed"),),
        (
            Claim("fine-tuning helps DINE", "dine, fine-tuned", "dine, distilled"),
            Claim("fine-tuning helps BETA", "beta, fine-tuned", "beta, distilled"),
            Claim(
                "the adversary helps BETA", "beta with an adversary, fine-tuned", "beta, fine-tuned"
            ),
            Claim("more epochs help DINE", "dine, five times the epochs", "dine, fine-tuned"),
            Claim("DINE needs a trained network", OTHER_CLASSES.format("dine"), "dine, fine-tuned"),
            Claim("BETA needs a trained network", OTHER_CLASSES.format("beta"), "beta, fine-tuned"),
            Claim(
                "from there DINE improves the deployed model",
                OTHER_CLASSES.format("dine"),
                "deployed",
            ),
            Claim(
                "from there BETA beats DINE",
                OTHER_CLASSES.format("beta"),
                OTHER_CLASSES.format("dine"),
            ),
            Claim(
                "from ImageNet's, as in the paper, DINE improves it",
                IMAGENETS.format("dine"),
                "deployed",
            ),
        ),
        paper=NO_SUCH,
    ),
    Experiment(
        "order",
        "Ours: LAME, batch norm and Tent where classes come one after another",
        tuple(
            Row(f"{name}{told}", name, order=order)
            for order, told in (("given", ""), ("classes", ", class by class"))
            for name in ORDERED
        ),
        (
            Claim(
                "LAME needs labels that are correlated",
                "lame, class by class",
                "deployed, class by class",
            ),
            Claim("and does nothing where they are not", "lame", "deployed", alike=True),
            Claim("batch statistics need classes that are mixed", "bn", "bn, class by class"),
            Claim(
                "soda-e answers each image for itself",
                "soda-e, class by class",
                "soda-e",
                alike=True,
            ),
        ),
        paper=NO_SUCH,
    ),
    Experiment(
        "convergence",
        "While learning",
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
            Claim("SODA improves a little", "soda-office-home", "deployed"),
            Claim("SODA-R improves more", "soda-r-office-home", "soda-office-home"),
        ),
        paper="Office-Home, art to clipart",
    ),
    Experiment(
        "alpha",
        "Ours: does the cross-entropy term matter?",
        varied("soda", "alpha", {0.0: None, 1e-4: None, 1e-2: None, 1.0: None}),
        (
            Claim(
                "at the paper's alpha it does nothing",
                "soda, alpha 0.0001",
                "soda, alpha 0.0",
                alike=True,
            ),
            Claim("a larger one harms", "soda, alpha 0.0", "soda, alpha 1.0"),
        ),
        paper=NO_SUCH,
    ),
    Experiment(
        "sigma",
        "Ours: directions of deviation 0.1 (released code) or 1 (as printed)",
        (
            *(
                Row(f"soda, sigma {sigma}, lr {lr}", "soda", {"sigma": sigma, "lr": lr})
                for sigma, lr in ((0.1, 0.03), (1.0, 0.03), (1.0, 1e-3), (1.0, 3e-4))
            ),
            *(
                Row(f"soda, sigma {sigma}, the paper's lr", "soda", {"sigma": sigma, "lr": None})
                for sigma in (0.1, 1.0)
            ),
        ),
        (
            Claim(
                "with steps of the same size they are alike",
                "soda, sigma 1.0, lr 0.0003",
                "soda, sigma 0.1, lr 0.03",
                True,
            ),
        ),
        paper=NO_SUCH,
    ),
    Experiment(
        "released",
        "Ours: reliable labels in their place, or misaligned as in the released code",
        tuple(
            Row(f"{name}, alpha {alpha:g}", "soda", {"aligned": name == "aligned", "alpha": alpha})
            for alpha in (1e-4, 1.0)
            for name in ("aligned", "misaligned")
        ),
        (
            Claim(
                "at the paper's alpha it costs nothing",
                "aligned, alpha 0.0001",
                "misaligned, alpha 0.0001",
                True,
            ),
            Claim("at alpha 1 it does", "aligned, alpha 1", "misaligned, alpha 1"),
        ),
        paper=NO_SUCH,
    ),
    Experiment(
        "average",
        "Ours: the mean of the answers before and after, at no query",
        tuple(
            Row(f"{method}{', averaged' if average else ''}", method, {"average": average})
            for method in ("soda", "soda-r", "da-pl")
            for average in (False, True)
        ),
        (),
        paper=NO_SUCH,
    ),
)
