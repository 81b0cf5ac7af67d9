"""Experiments that the paper does not have: deeper networks, distillation, order and averaging."""

from __future__ import annotations

from paper_rows import NOT_IN_PAPER, Claim, Experiment, Row, vary
from soda_tta.bench.experiments import ORDERED

SIZES = ((500, 30), (2000, 8), (500, 120), (2000, 30))  # images, epochs
USUAL = "{}, 500 images, 30 epochs"
MORE_IMAGES = "{}, 2,000 images, 8 epochs"  # as many steps as USUAL
MORE_STEPS = "{}, 500 images, 120 epochs"
MORE_OF_BOTH = "{}, 2,000 images, 30 epochs"

DISTILLATION = (
    ("dine", "dine", {"target": None}),
    ("beta", "beta", {"adversarial": 0.0}),
    ("beta with an adversary", "beta", {"adversarial": 0.1}),
)
STAGES = (  # epochs of the second stage (6 at desk scale, 30 at the paper's), name, images
    (0, "distilled", None),
    (6, "fine-tuned", 500),
    (30, "fine-tuned for 30 epochs", 10_000),
)
TRAINED_NETWORKS = {
    "a ResNet-20 of CIFAR-100": "cifar100_resnet20",
    "ImageNet's ResNet-50": "imagenet_resnet50",
}
FROM_CIFAR100 = "{}, from a ResNet-20 of CIFAR-100"
FROM_IMAGENET = "{}, from ImageNet's ResNet-50"

ADDITIONAL_NETWORKS = (
    Experiment(
        "blocks-start",
        "Additional: residual blocks with the identity start",
        tuple(
            row
            for name in ("soda", "soda-r")
            for row in vary(name, "blocks", dict.fromkeys((0, 1, 2, 3)))
        ),
        (
            Claim("blocks make SODA worse here as well", "soda, blocks 0", "soda, blocks 2"),
            Claim("blocks make SODA-R better here", "soda-r, blocks 2", "soda-r, blocks 0"),
        ),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "deeper",
        "Additional: does SODA-R need more images or more steps?",
        tuple(
            Row(
                f"{name}, {images:,} images, {epochs} epochs",
                name,
                {"epochs": epochs},
                images=images,
            )
            for name in ("soda-fo", "soda-r")
            for images, epochs in SIZES
        ),
        (
            Claim(
                "more images in as many steps improve SODA-R",
                MORE_IMAGES.format("soda-r"),
                USUAL.format("soda-r"),
            ),
            Claim("more steps improve SODA-R", MORE_STEPS.format("soda-r"), USUAL.format("soda-r")),
            Claim(
                "at as many steps, more images improve SODA-R",
                MORE_OF_BOTH.format("soda-r"),
                MORE_STEPS.format("soda-r"),
            ),
            Claim(
                "with more steps SODA-R is better than SODA-FO",
                MORE_STEPS.format("soda-r"),
                MORE_STEPS.format("soda-fo"),
            ),
            Claim(
                "with more of both SODA-R is better than SODA-FO",
                MORE_OF_BOTH.format("soda-r"),
                MORE_OF_BOTH.format("soda-fo"),
            ),
        ),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "deeper-contrast",
        "Additional: more images and steps on contrast",
        tuple(
            Row(size.format(name), name, images=images)
            for name in ("soda-fo", "soda-r")
            for size, images in ((USUAL, 500), (MORE_OF_BOTH, 2000))
        ),
        (
            Claim(
                "more of both improve SODA-R",
                MORE_OF_BOTH.format("soda-r"),
                USUAL.format("soda-r"),
            ),
            Claim(
                "with more of both SODA-R is better than SODA-FO",
                MORE_OF_BOTH.format("soda-r"),
                MORE_OF_BOTH.format("soda-fo"),
            ),
        ),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "peers",
        "DINE and BETA, stage by stage",
        (
            *(
                Row(f"{name}, {stage}", method, {"finetune_epochs": epochs, **own}, images=images)
                for name, method, own in DISTILLATION
                for epochs, stage, images in STAGES
                if epochs or not own.get("adversarial")
            ),
            *(
                Row(f"dine, {change}", "dine", {"target": None, **settings}, images=images)
                for change, settings, images in (
                    ("five times the epochs", {"finetune_epochs": 30}, 500),
                    ("four times the images", {"finetune_epochs": 6}, 2000),
                )
            ),
            *(
                Row(f"{name}, from {network}", name, {"target": target})
                for network, target in TRAINED_NETWORKS.items()
                for name in ("dine", "beta")
            ),
            Row("deployed", "deployed"),
        ),
        (
            Claim("fine-tuning improves DINE", "dine, fine-tuned", "dine, distilled"),
            Claim("fine-tuning improves BETA", "beta, fine-tuned", "beta, distilled"),
            Claim(
                "the adversary improves BETA",
                "beta with an adversary, fine-tuned",
                "beta, fine-tuned",
            ),
            Claim("more epochs improve DINE", "dine, five times the epochs", "dine, fine-tuned"),
            Claim(
                "a trained network improves DINE", FROM_CIFAR100.format("dine"), "dine, fine-tuned"
            ),
            Claim(
                "a trained network improves BETA", FROM_CIFAR100.format("beta"), "beta, fine-tuned"
            ),
            Claim(
                "from it, DINE improves the deployed model",
                FROM_CIFAR100.format("dine"),
                "deployed",
            ),
            Claim(
                "from it, BETA is better than DINE",
                FROM_CIFAR100.format("beta"),
                FROM_CIFAR100.format("dine"),
            ),
            Claim(
                "from ImageNet's network, as in the paper, DINE improves the deployed model",
                FROM_IMAGENET.format("dine"),
                "deployed",
            ),
        ),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "order",
        "Additional: LAME, batch norm and Tent on images sorted by class",
        tuple(
            Row(f"{name}{suffix}", name, order=order)
            for order, suffix in (("given", ""), ("classes", ", sorted by class"))
            for name in ORDERED
        ),
        (
            Claim(
                "LAME improves the deployed model where labels are correlated",
                "lame, sorted by class",
                "deployed, sorted by class",
            ),
            Claim("and changes nothing where they are not", "lame", "deployed", equal=True),
            Claim("batch statistics need mixed classes", "bn", "bn, sorted by class"),
            Claim(
                "soda-e does not depend on the order",
                "soda-e, sorted by class",
                "soda-e",
                equal=True,
            ),
        ),
        paper=NOT_IN_PAPER,
    ),
    Experiment(
        "average",
        "Additional: averaging the predictions before and after adaptation",
        tuple(
            Row(f"{method}{', averaged' if average else ''}", method, {"average": average})
            for method in ("soda", "soda-r", "da-pl")
            for average in (False, True)
        ),
        (),
        paper=NOT_IN_PAPER,
    ),
)
