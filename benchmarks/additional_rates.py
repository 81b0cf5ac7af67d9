"""Experiments that the paper does not have: learning rates, steps, starts and the released code."""

from __future__ import annotations

from paper_rows import NOT_IN_PAPER, Claim, Experiment, Row, vary
from soda_tta.bench.experiments import STARTED, STARTS
from soda_tta.methods.loop_method import LEARNING_RATES

EVERY_RATE = dict.fromkeys(LEARNING_RATES[::-1])
EVERY_START = dict.fromkeys(STARTS)
PAPER_RATE = "soda, the paper's lr"
CHOSEN_RATE = "soda, the lr with the lowest final loss"
SAME_QUERIES = (  # q, epochs, lr: 182 queries per image each
    (1, 90, 0.03),
    (1, 90, 0.01),
    (2, 60, 0.03),
    (2, 60, 0.01),
    (5, 30, 0.03),
    (8, 20, 0.03),
    (17, 10, 0.03),
)
FIVE_DIRECTIONS = "q 5, 30 epochs, lr 0.03"
TWO_DIRECTIONS = "q 2, 60 epochs, lr {}"

ADDITIONAL_RATES = (
    Experiment(
        "yardstick",
        "The paper's own budget: 150 epochs, 900 queries per image, 1,000 images",
        (
            Row(PAPER_RATE, "soda", {"lr": None}),
            Row(CHOSEN_RATE, "soda", lowest_loss=True),
        ),
        (Claim("on 1,000 images a larger lr is better", CHOSEN_RATE, PAPER_RATE),),
        paper=NOT_IN_PAPER,
        by_corruption=True,
    ),
    Experiment(
        "rates",
        "Additional: every learning rate of lr=auto",
        (
            *vary("soda", "lr", dict.fromkeys(("auto", *EVERY_RATE))),
            *(
                row
                for name in ("soda-fo", "soda-o", "da-zoo-input")
                for row in vary(name, "lr", EVERY_RATE)
            ),
        ),
        (
            Claim(
                "lr=auto is as good as the best rate", "soda, lr auto", "soda, lr 0.03", equal=True
            ),
        ),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "rates-kept",
        "Additional: the learning rates of soda-r and ma-so",
        (
            *vary("soda-r", "lr", dict.fromkeys((0.01, 0.003, 0.001, 0.0003))),
            *vary("ma-so", "lr", dict.fromkeys((0.01, 0.001))),
        ),
        (
            Claim(
                "ten times the learning rate makes no difference for ma-so",
                "ma-so, lr 0.01",
                "ma-so, lr 0.001",
                equal=True,
            ),
        ),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "rates-cifar100",
        "Additional: a smaller learning rate for CIFAR-100",
        vary("soda", "lr", dict.fromkeys((0.03, 0.01))),
        (),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "steps",
        "Additional: the same queries in more or fewer steps",
        tuple(
            Row(f"q {q}, {epochs} epochs, lr {lr}", "soda", {"q": q, "epochs": epochs, "lr": lr})
            for q, epochs, lr in SAME_QUERIES
        ),
        (
            Claim(
                "at the learning rate of five directions, two directions in twice the steps are "
                "worse",
                FIVE_DIRECTIONS,
                TWO_DIRECTIONS.format(0.03),
            ),
            Claim(
                "at a smaller learning rate they equal five",
                TWO_DIRECTIONS.format(0.01),
                FIVE_DIRECTIONS,
                equal=True,
            ),
            Claim(
                "one direction in three times the steps equals five as well",
                "q 1, 90 epochs, lr 0.01",
                FIVE_DIRECTIONS,
                equal=True,
            ),
            Claim(
                "many directions in few steps are worse",
                FIVE_DIRECTIONS,
                "q 17, 10 epochs, lr 0.03",
            ),
        ),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "start",
        "Additional: the cost of a random start",
        (
            *(row for name in STARTED for row in vary(name, "start", EVERY_START)),
            Row("ma-so", "ma-so"),
        ),
        (
            *(
                Claim(
                    f"the identity start improves {name.upper()}",
                    f"{name}, start 0.0",
                    f"{name}, start 1.0",
                )
                for name in STARTED
            ),
            Claim(
                "with it, true gradients are better than estimated ones",
                "soda-fo, start 0.0",
                "soda, start 0.0",
            ),
            Claim(
                "with it, SODA-R is better than SODA-FO", "soda-r, start 0.0", "soda-fo, start 0.0"
            ),
            Claim("with it, SODA-R is better than SODA", "soda-r, start 0.0", "soda, start 0.0"),
            Claim(
                "with it, SODA-R is better than adapting the model", "soda-r, start 0.0", "ma-so"
            ),
        ),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "start-cifar100",
        "Additional: the start on CIFAR-100",
        (
            *(row for name in ("soda", "soda-r") for row in vary(name, "start", EVERY_START)),
            Row("ma-so", "ma-so"),
        ),
        (
            *(
                Claim(
                    f"the identity start improves {name.upper()}",
                    f"{name}, start 0.0",
                    f"{name}, start 1.0",
                )
                for name in ("soda", "soda-r")
            ),
            Claim("with it, SODA-R is better than SODA", "soda-r, start 0.0", "soda, start 0.0"),
            Claim("adapting the model is better than SODA-R", "ma-so", "soda-r, start 0.0"),
        ),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "alpha",
        "Additional: does the cross-entropy term matter?",
        vary("soda", "alpha", {0.0: None, 1e-4: None, 1e-2: None, 1.0: None}),
        (
            Claim(
                "at the paper's alpha it makes no difference",
                "soda, alpha 0.0001",
                "soda, alpha 0.0",
                equal=True,
            ),
            Claim("a larger alpha lowers accuracy", "soda, alpha 0.0", "soda, alpha 1.0"),
        ),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "sigma",
        "Additional: directions of standard deviation 0.1 (released code) or 1 (as printed)",
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
                "with steps of the same size the two are equal",
                "soda, sigma 1.0, lr 0.0003",
                "soda, sigma 0.1, lr 0.03",
                equal=True,
            ),
        ),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "released",
        "Additional: reliable labels aligned, or misaligned as in the released code",
        tuple(
            Row(f"{name}, alpha {alpha:g}", "soda", {"aligned": name == "aligned", "alpha": alpha})
            for alpha in (1e-4, 1.0)
            for name in ("aligned", "misaligned")
        ),
        (
            Claim(
                "at the paper's alpha the misalignment makes no difference",
                "aligned, alpha 0.0001",
                "misaligned, alpha 0.0001",
                equal=True,
            ),
            Claim(
                "at alpha 1 it lowers accuracy",
                "aligned, alpha 1",
                "misaligned, alpha 1",
            ),
        ),
        paper=NOT_IN_PAPER,
    ),
)
