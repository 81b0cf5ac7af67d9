"""How many scenes the images show: near copies of an image count once in a verdict."""

from __future__ import annotations

from soda_tta.data import Images
from soda_tta.data.scenes import scenes_among
from soda_tta.doctor.finding import Finding
from soda_tta.judging.scene_means import scene_count
from soda_tta.methods.economy_plan import FEWEST_SCENES
from soda_tta.types import Array
from soda_tta.wording import counted

REMEDY = (
    "Add images of other scenes. If these are different things in front of one background, "
    'specify groups="none".'
)


def check_scenes(images: Images, chosen: Array) -> Finding:
    """Count the scenes among the chosen images, from their pixels and without a query."""
    count = scene_count(scenes_among(images, chosen))
    total = len(chosen)
    measurements = {"images": total, "scenes": count}
    if count > total / 2:
        shown = "show" if total > 1 else "shows"
        scenes = counted(count, "different scene")
        sentence = f"{counted(total, 'image')} {shown} {scenes}."
        return Finding(name="scenes", state="good", sentence=sentence, measurements=measurements)
    if count >= FEWEST_SCENES:
        return Finding(
            name="scenes",
            state="caution",
            sentence=f"{total:,} images show only {counted(count, 'scene')}; near copies of an "
            "image count once in the verdict, so only large gains can be recognised.",
            measurements=measurements,
            remedy=REMEDY,
        )
    return Finding(
        name="scenes",
        state="bad",
        sentence=f"{total:,} images show only {counted(count, 'scene')}; near copies of an image "
        f"count once, and nothing can be concluded from fewer than {FEWEST_SCENES}.",
        measurements=measurements,
        remedy=REMEDY,
    )
