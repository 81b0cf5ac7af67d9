"""Which conditions the images are of: day and night in one folder are adapted separately."""

from __future__ import annotations

from soda_tta.conditions import find_conditions
from soda_tta.conditions.find import IMAGES_PER_GAUSSIAN
from soda_tta.conditions.statistics import SMALLEST_SIDE
from soda_tta.data import Images
from soda_tta.data.images import Subset
from soda_tta.doctor.finding import Finding
from soda_tta.methods.economy_plan import FEWEST_OF_CONDITION
from soda_tta.types import Array
from soda_tta.wording import counted

FEWEST_IMAGES = 2 * IMAGES_PER_GAUSSIAN  # fewer cannot show two conditions
SEPARATELY = (
    "soda-e adapts each condition separately, which is its default; conditions=1 learns one "
    "adaptor for all images. 'soda-tta conditions --sheet conditions.png' shows typical images."
)
TOGETHER = (
    f"They are adapted together: a condition of fewer than {FEWEST_OF_CONDITION} images has no "
    "search of its own. Collect more images."
)


def check_conditions(images: Images, chosen: Array, seed: int) -> Finding | None:
    """Tell the conditions of the chosen images apart, from their pixels and without a query.

    None if there are too few images, or if they are too small.
    """
    if len(chosen) < FEWEST_IMAGES or min(images.size) < SMALLEST_SIDE:
        return None
    found = find_conditions(Subset(images, chosen), seed=seed)
    sizes = found.sizes()
    shares = [size / len(chosen) for size in sizes]
    large = sum(share * len(images) >= FEWEST_OF_CONDITION for share in shares)
    measurements = {
        "images": len(chosen),
        "conditions": [
            {"words": words, "images": size, "share": round(share, 4)}
            for words, size, share in zip(found.words, sizes, shares, strict=True)
        ],
        "adapted_separately": large if large > 1 else 1,
        "unfamiliar": int(found.unfamiliar.sum()),
    }
    if len(found) == 1:
        sentence = "The images are of one condition, as far as their pixels show."
        return Finding(
            name="conditions", state="good", sentence=sentence, measurements=measurements
        )
    shown = "; ".join(
        f"{words} ({share:.0%})" for words, share in zip(found.words, shares, strict=True)
    )
    return Finding(
        name="conditions",
        state="good",
        sentence=f"{counted(len(found), 'condition')} among {counted(len(chosen), 'image')}: "
        f"{shown}.",
        measurements=measurements,
        remedy=SEPARATELY if large > 1 else TOGETHER,
    )
