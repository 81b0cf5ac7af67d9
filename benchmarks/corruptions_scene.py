"""A drawn street scene under all 19 corruptions at all five severities, on one sheet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from soda_tta.data.corruptions import CORRUPTIONS, SEVERITIES, corrupt

SIDE = 224  # pixels: the size that the ImageNet constants are made for
SHOWN = 112  # pixels on the sheet, so that the file stays small
MARGIN = 16  # pixels for the names


def draw_scene() -> np.ndarray:
    """Sky, sun, hills, house, tree, car: gradients, sharp edges, fine texture, strong colours."""
    generator = np.random.default_rng(0)
    rows = np.linspace(0, 1, SIDE)[:, None, None]
    sky = np.array([70, 130, 210]) * (1 - rows) + np.array([215, 230, 245]) * rows
    picture = Image.fromarray(np.broadcast_to(sky, (SIDE, SIDE, 3)).astype(np.uint8))
    pen = ImageDraw.Draw(picture)
    pen.ellipse((165, 18, 197, 50), fill=(255, 236, 150))
    pen.polygon(
        [(0, 130), (50, 85), (105, 125), (150, 78), (224, 120), (224, 224), (0, 224)],
        fill=(86, 122, 92),
    )
    pen.rectangle((0, 140, 224, 224), fill=(104, 150, 70))
    for x, y in generator.integers((0, 140), (224, 186), (900, 2)):
        shade = int(generator.integers(-30, 30))
        pen.line((x, y, x, y - 4), fill=(104 + shade, 150 + shade, 70 + shade))
    pen.rectangle((25, 90, 100, 160), fill=(196, 120, 88))
    for y in range(94, 160, 6):
        pen.line((25, y, 100, y), fill=(160, 92, 68))
    pen.polygon([(17, 92), (62, 52), (108, 92)], fill=(120, 44, 44))
    for x in (34, 72):
        pen.rectangle((x, 102, x + 18, 122), fill=(60, 80, 110), outline=(245, 245, 235), width=2)
    pen.rectangle((53, 128, 69, 160), fill=(72, 50, 36))
    pen.rectangle((158, 108, 168, 165), fill=(92, 66, 44))
    for x, y in generator.normal((163, 88), (17, 15), (260, 2)):
        green = int(generator.integers(80, 160))
        pen.ellipse((x - 5, y - 4, x + 5, y + 4), fill=(green // 3, green, green // 3))
    pen.rectangle((0, 186, 224, 224), fill=(72, 72, 78))
    for x in range(4, 224, 36):
        pen.rectangle((x, 203, x + 18, 206), fill=(235, 235, 225))
    pen.rounded_rectangle((98, 170, 186, 196), 7, fill=(208, 32, 44))
    pen.polygon(
        [(114, 171), (126, 154), (160, 154), (174, 171)],
        fill=(150, 200, 225),
        outline=(208, 32, 44),
    )
    for x in (115, 168):
        pen.ellipse((x - 10, 186, x + 10, 206), fill=(24, 24, 26), outline=(190, 190, 190), width=2)
    return np.asarray(picture)


def draw_grid(file: Path) -> None:
    """One row per corruption: the name, then severities 1 to 5; two corruptions side by side."""
    scene = draw_scene()[None]
    per_side = (len(CORRUPTIONS) + 2) // 2  # 19 and the clean picture, in two columns
    block = len(SEVERITIES) * SHOWN + 8
    sheet = Image.new("RGB", (2 * block, per_side * (SHOWN + MARGIN)), "white")
    pen = ImageDraw.Draw(sheet)
    for position, name in enumerate(("clean", *CORRUPTIONS)):
        left = position // per_side * block
        top = position % per_side * (SHOWN + MARGIN)
        pen.text((left + 2, top + 2), name.replace("_", " "), fill="black")
        for column, severity in enumerate(SEVERITIES[:1] if name == "clean" else SEVERITIES):
            image = scene if name == "clean" else corrupt(scene, name, severity)
            small = Image.fromarray(image[0]).resize((SHOWN, SHOWN), Image.Resampling.BOX)
            sheet.paste(small, (left + column * SHOWN, top + MARGIN))
    sheet.save(file, quality=72, optimize=True)
    print(f"{file}: {file.stat().st_size // 1000} kB")
