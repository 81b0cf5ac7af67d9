"""A picture of the conditions: a row of typical images for each, with its words beside it."""

from __future__ import annotations

import textwrap

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from soda_tta.conditions.find import Conditions
from soda_tta.data import Images

PER_ROW = 8  # images of a condition
CELL = 96  # pixels of one image
GAP = 4
MARGIN = 220  # pixels for the words
INK, PAPER = (30, 30, 30), (255, 255, 255)


def draw_sheet(images: Images, conditions: Conditions) -> Image.Image:
    """The picture sheet.

    Parameters
    ----------
    images : Images
        Those that the conditions were found in.
    conditions : Conditions
    """
    step = CELL + GAP
    size = (MARGIN + PER_ROW * step + GAP, len(conditions) * step + GAP)
    sheet = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=13)
    total = len(conditions.of_each)
    for row, (words, count) in enumerate(zip(conditions.words, conditions.sizes(), strict=True)):
        top = GAP + row * step
        caption = f"{row}: {words}\n{count:,} images, {count / total:.0%}"
        lines = [part for line in caption.split("\n") for part in textwrap.wrap(line, 28)]
        draw.multiline_text((10, top + 8), "\n".join(lines), fill=INK, font=font)
        positions = conditions.examples(row, PER_ROW)
        for column, image in enumerate(images[positions]):
            sheet.paste(thumbnail(image), (MARGIN + column * step, top))
    return sheet


def thumbnail(image: np.ndarray) -> Image.Image:
    """One image as a cell of the sheet, its centre if it is not square."""
    pixels = np.rint(image.transpose(1, 2, 0) * 255).astype(np.uint8)
    side = min(pixels.shape[:2])
    top, left = ((extent - side) // 2 for extent in pixels.shape[:2])
    square = Image.fromarray(pixels[top : top + side, left : left + side])
    way = Image.Resampling.NEAREST if side < CELL else Image.Resampling.BILINEAR
    return square.resize((CELL, CELL), way)
