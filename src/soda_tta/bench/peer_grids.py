"""Grids of the methods that use a helper, and of the baselines that need none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from soda_tta.bench.cell import Cell
from soda_tta.bench.scales import FIVE, PAIR, Scale
from soda_tta.data.corruptions import CORRUPTIONS

EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")  # not among the standard 15
STANDARD = tuple(name for name in CORRUPTIONS if name not in EXTRA)
CONTROLS = ("helper-adapted", "helper", "f0", "f1", "f2", "framed")
Row = tuple[str, float | None, dict[str, Any]]  # method, budget, settings


class Pairing(NamedTuple):
    """A deployed model, its helper, and the images both are tried on."""

    data: str
    model: str
    helper: str
    images: int

    def cells(
        self, rows: Iterable[Row], corruptions: Iterable[str], images: int = 0, order: str = "given"
    ) -> list[Cell]:
        """Every row on every corruption; settings of a method with a helper get this one."""
        return [
            Cell(
                method=method,
                data=self.data,
                model=self.model,
                corruption=corruption,
                images=images or self.images,
                order=order,
                budget=budget,
                settings=dict(settings) | ({"helper": self.helper} if "helper" in settings else {}),
            )
            for corruption in corruptions
            for method, budget, settings in rows
        ]


def helped(**settings: Any) -> dict[str, Any]:
    """Settings with a place for the helper."""
    return {"helper": None, **settings}


UNHELPED: tuple[Row, ...] = (("deployed", None, {}), ("soda-e", 5.0, {}))
ONE_QUERY: tuple[Row, ...] = (
    ("soda-e", None, helped()),
    ("soda-e", None, helped(fuse=0.4)),
    ("beta26", None, helped(variant="full")),
    ("beta26", None, helped(variant="helper-adapted")),
)
MAIN = (*UNHELPED, *ONE_QUERY)
FURTHER: tuple[Row, ...] = (
    *(("beta26", None, helped(variant=variant)) for variant in CONTROLS[1:]),
    ("soda-e", 3.0, helped()),
    ("tta", None, {"views": 2}),
    ("tta", None, {"views": 10}),
    ("zero", None, {}),
)


def cifar10(scale: Scale) -> list[Cell]:
    """ResNet-20 with ResNet-32 as its helper on the 15 standard corruptions, and the reverse.

    At the desk scale, controls, baselines and the reverse take five corruptions. Sorted images and
    small batches, where averages over a batch mean something else, take two.
    """
    images = 2 * scale.images
    usual = Pairing("cifar10", "cifar10_resnet20", "cifar10_resnet32", images)
    reverse = Pairing("cifar10", "cifar10_resnet32", "cifar10_resnet20", images)
    fewer = STANDARD if scale.paper_lr else FIVE
    first = [*FIVE, *(name for name in STANDARD if name not in FIVE)]
    batches: list[Row] = [("beta26", None, helped(variant="full", batch=16))]
    single: list[Row] = [("beta26", None, helped(variant="full", batch=1))]
    return [
        *usual.cells(MAIN, first),
        *usual.cells(FURTHER, fewer),
        *reverse.cells(MAIN, fewer),
        *usual.cells(ONE_QUERY, PAIR, order="classes"),
        *usual.cells(batches, PAIR),
        *usual.cells(single, PAIR, images=min(images, 200)),
    ]


def imagenet(scale: Scale) -> list[Cell]:
    """An int8 MobileNetV2 with EfficientNet-Lite0 as its helper, on ImageNet validation images.

    At the paper scale also ResNet-50 with the same helper, on all 15 corruptions. With a helper,
    soda-e searches on fewer images: at 224 pixels restoring them takes most of the time.
    """
    data, lite0 = "imagenet-val-2000", "imagenet_efficientnet_lite0"
    large = scale.paper_lr
    images = 2000 if large else min(scale.images, 256)
    small = Pairing(data, "imagenet_mobilenet_v2_int8", lite0, images)
    rows = [
        (method, budget, {**settings, "batch": 32} if "helper" in settings else settings)
        if method == "soda-e"
        else (method, budget, settings)
        for method, budget, settings in (MAIN if not large else (*MAIN, *FURTHER))
    ]
    if not large:
        return small.cells(rows, PAIR[::-1])
    resnet = Pairing(data, "imagenet_resnet50", lite0, images)
    return [*small.cells(rows, STANDARD), *resnet.cells(rows, STANDARD)]
