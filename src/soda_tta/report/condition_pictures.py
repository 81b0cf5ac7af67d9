"""What is done to each condition, in pictures: examples before and after, and measured curves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.adaptors import Adaptor, Identity, RoutedAdaptor
from soda_tta.data import Images
from soda_tta.data.images import Subset
from soda_tta.report import figures
from soda_tta.report.conditions import ConditionAnalysis
from soda_tta.report.examples import data_uri
from soda_tta.report.page import Figure
from soda_tta.report.record import RunRecord
from soda_tta.report.response import measure_response
from soda_tta.report.response_text import describe_response
from soda_tta.types import Array

SHOWN = 6  # typical images of each condition
ROUTED = 200  # images that are routed to find some of each condition


@dataclass(frozen=True)
class Pair:
    """A typical image as it is and, if its condition is adapted, as it is sent to the model."""

    name: str
    before: str  # a data URI
    after: str | None


def condition_pictures(
    record: RunRecord, conditions: list[ConditionAnalysis], images: Images | None
) -> list[list[Pair]]:
    """Typical images of each condition, before and after; none without images."""
    return [_pairs(record, condition, images) for condition in conditions]


def _pairs(record: RunRecord, condition: ConditionAnalysis, images: Images | None) -> list[Pair]:
    if images is None:
        return []
    places = [place for place in condition.result.examples if 0 <= place < len(images)][:SHOWN]
    if not places:
        return []
    originals = images[places]
    adapted = condition.result.adaptor(originals) if condition.result.adopted else None
    return [
        Pair(
            record.name(place),
            data_uri(originals[row]),
            None if adapted is None else data_uri(adapted[row]),
        )
        for row, place in enumerate(places)
    ]


def adaptor_sections(record: RunRecord, images: Images | None) -> list[dict[str, Any]]:
    """The adaptor of each condition, as it describes itself and as measured.

    One section for all images if there are no conditions, and none if nothing is done.
    """
    if record.adaptor is None or isinstance(record.adaptor, Identity):
        return []
    if not isinstance(record.adaptor, RoutedAdaptor):
        return [adaptor_section("", record.adaptor, record.size, images)]
    return [
        adaptor_section(words, adaptor, record.size, own)
        for words, adaptor, own in _of_each(record, record.adaptor, images)
    ]


def _of_each(
    record: RunRecord, routed: RoutedAdaptor, images: Images | None
) -> Iterator[tuple[str, Adaptor, Images | None]]:
    """The words and the adaptor of each condition that is adapted, with some of its images."""
    members = _some_members(record, routed, images)
    for number, (words, adaptor) in enumerate(zip(routed.words, routed.adaptors, strict=True)):
        if isinstance(adaptor, Identity) or not adaptor.parameters.any():
            continue
        own = members.get(number)
        yield words, adaptor, None if images is None or own is None else Subset(images, own)


def _some_members(
    record: RunRecord, routed: RoutedAdaptor, images: Images | None
) -> dict[int, Array]:
    """Positions of images of each condition that has any, by its number."""
    if images is None:
        return {}
    if record.conditions is not None:
        routes, places = record.conditions.routes, np.arange(len(images))
    else:  # as for a run that was interrupted: its images are routed once more
        places = np.unique(np.linspace(0, len(images) - 1, ROUTED).astype(int))
        routes = routed.routes(images[places])
    found = {
        number: places[(routes.conditions == number) & routes.familiar]
        for number in range(len(routed.adaptors))
    }
    return {number: own for number, own in found.items() if len(own)}


def adaptor_section(
    words: str, adaptor: Adaptor, size: tuple[int, int], images: Images | None
) -> dict[str, Any]:
    """What an adaptor does: in its own words, in measured ones, and as curves."""
    response = measure_response(adaptor, size, images)
    whose = "of this condition" if words else "of this run"
    kind = "generated pictures" if response.synthetic else f"images {whose}"
    basis = f"{response.pictures} {kind}"
    tone = f"Tone: the mean output of each pixel value, on {basis}. The dotted line: no change."
    if not response.common:
        tone += " This adaptor depends on the image, so each image has a curve of its own."
    frequency = (
        "Detail: the share of a faint grating that passes the adaptor, from coarse (left) to "
        "fine (right). 1 is unchanged, less is smoothed, more is sharpened."
    )
    return {
        "words": words,
        "description": adaptor.describe(),
        "measured": describe_response(response),
        "basis": basis,
        "figures": [
            Figure(figures.tone_curve(response, words), tone),
            Figure(figures.frequency_response(response, words), frequency),
        ],
    }
