"""The paper's ablations as experiments: one setting of SODA, SODA-R or SODA-O varied at a time.

Accuracies are in percent: means over the 19 corruptions of CIFAR-10-C at severity 5, measured with
the paper's ResNet-50.
"""

from __future__ import annotations

from itertools import product

from paper_rows import Claim, Experiment, Row, vary

SELECTION = {"tau": (0.1, 0.5, 0.9), "rho": (0.1, 0.5, 0.9), "alpha": (1e-4, 1e-3, 1e-2)}
QUEUES = {500: 78.78, 1000: 78.79, 2000: 78.22, 3000: 77.73}
MARGINAL = "{} {:g}, mean over the rest"
CORNER = "tau {} and rho {}, mean over alpha"

ABLATIONS = (
    Experiment(
        "queries",
        "Number of directions",
        (
            *vary("soda", "q", {2: 82.43, 5: 82.55, 10: 82.57, 20: 82.59, 50: 82.53}),
            Row("soda-fo", "soda-fo", paper=85.97),
        ),
        (
            Claim(
                "two directions are nearly as good as five", "soda, q 5", "soda, q 2", equal=True
            ),
            Claim("twenty directions equal five", "soda, q 20", "soda, q 5", equal=True),
            Claim("the true gradient is better than any of them", "soda-fo", "soda, q 20"),
        ),
    ),
    Experiment(
        "blocks",
        "Residual blocks in the adaptor",
        (
            *vary("soda", "blocks", {0: 82.55, 1: 81.91, 2: 80.56, 3: 78.65}),
            *vary("soda-r", "blocks", {0: 86.07, 1: 88.07, 2: 88.39, 3: 88.51}),
        ),
        (
            Claim("blocks make SODA worse", "soda, blocks 0", "soda, blocks 3"),
            Claim("blocks make SODA-R better", "soda-r, blocks 2", "soda-r, blocks 0"),
        ),
    ),
    Experiment(
        "points",
        "Number of test images: points gained (the paper prints a figure)",
        tuple(
            Row(f"{count:,} images", "soda", images=count)
            for count in (50, 100, 500, 1000, 5000, 10_000)
        ),
        (
            Claim("1,000 images are better than 100", "1,000 images", "100 images"),
            Claim("500 images are better than 50", "500 images", "50 images"),
        ),
        gain=True,
    ),
    Experiment(
        "online-epochs",
        "SODA-O: epochs per batch of 256",
        vary(
            "soda-o", "epochs", {5: 75.22, 10: 77.03, 30: 79.63, 50: 80.38, 100: 81.33, 150: 81.71}
        ),
        (
            Claim("30 epochs are better than 5", "soda-o, epochs 30", "soda-o, epochs 5"),
            Claim("50 epochs are better than 10", "soda-o, epochs 50", "soda-o, epochs 10"),
        ),
    ),
    Experiment(
        "online-batch",
        "SODA-O: images per batch, 10 epochs",
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
                "accuracy hardly depends on the batch size",
                "soda-o, arrival 128",
                "soda-o, arrival 32",
                equal=True,
            ),
            Claim(
                "a smaller learning rate improves the smallest batch",
                "soda-o, arrival 32, lr 0.01",
                "soda-o, arrival 32",
                additional=True,
            ),
            Claim(
                "with it, batches of 32 equal batches of 128",
                "soda-o, arrival 128",
                "soda-o, arrival 32, lr 0.01",
                equal=True,
                additional=True,
            ),
        ),
    ),
    Experiment(
        "online-queue",
        "SODA-O: images in the queue (a tenth of each at desk scale)",
        (
            *vary("soda-o", "queue", QUEUES),
            *(
                Row(f"soda-o, queue {size // 10}", "soda-o", {"queue": size // 10}, paper)
                for size, paper in QUEUES.items()
            ),
        ),
        (
            Claim(
                "accuracy hardly depends on the queue",
                "soda-o, queue 100",
                "soda-o, queue 300",
                equal=True,
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
                for alpha, tau, rho in product(
                    SELECTION["alpha"], SELECTION["tau"], SELECTION["rho"]
                )
            ),
            *(
                Row(MARGINAL.format(name, value), "soda", {name: value}, averaged=True)
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
                    f"accuracy hardly depends on {name}",
                    MARGINAL.format(name, low),
                    MARGINAL.format(name, high),
                    equal=True,
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
        "regularisation",
        "Norm of the perturbation",
        (
            *vary("soda", "beta", {0.0: 82.55, 0.005: 73.40}),
            *vary("soda-r", "beta", {0.0: 87.96, 0.005: 88.39}),
        ),
        (
            Claim("the norm makes SODA worse", "soda, beta 0.0", "soda, beta 0.005"),
            Claim(
                "the norm makes SODA-R a little better", "soda-r, beta 0.005", "soda-r, beta 0.0"
            ),
        ),
    ),
    Experiment(
        "optimisers",
        "SGD and Adam",
        (
            *vary("soda", "step", {"sgd": 82.55, "adam": 82.75}),
            *vary("soda-r", "step", {"sgd": 84.95, "adam": 88.39}),
        ),
        (
            Claim("for SODA the two are equal", "soda, step adam", "soda, step sgd", equal=True),
            Claim("for SODA-R Adam is better", "soda-r, step adam", "soda-r, step sgd"),
        ),
    ),
    Experiment(
        "dropout",
        "Dropout with two residual blocks",
        (
            *vary("soda", "dropout", {0.0: 80.56, 0.5: 32.19}),
            *vary("soda-r", "dropout", {0.0: 87.54, 0.5: 88.39}),
        ),
        (
            Claim("dropout makes SODA worse", "soda, dropout 0.0", "soda, dropout 0.5"),
            Claim(
                "dropout makes SODA-R a little better", "soda-r, dropout 0.5", "soda-r, dropout 0.0"
            ),
        ),
    ),
)
