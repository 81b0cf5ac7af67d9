"""The tables of docs/research/prior-views.md, from what prior_views.py has stored."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from pages import NOT_RUN, markdown
from prior_views import CLEAN, DEVELOPMENT, KINDS, MIXED, MODELS, SKEWED, VERDICT_IMAGES, held_out

POINT = 1.0  # smaller changes of accuracy are neither gain nor harm
Stored = dict[str, Any]


def tables(stored: Stored) -> dict[str, str]:
    """Every table of the page."""
    return {
        "answers": answers_table(stored),
        "corruptions": corruptions_table(stored),
        "skewed": skewed_table(stored),
        "warnings": warnings_table(stored),
        "mixed": mixed_table(stored),
        "verdicts": verdicts_table(stored),
        "agreement": agreement_table(stored),
    }


def of(stored: Stored, model: str, corruptions: Sequence[str]) -> list[Any]:
    """What is stored of these corruptions; empty unless all are."""
    names = [f"{model}/{corruption}" for corruption in corruptions]
    return [stored[name] for name in names] if all(name in stored for name in names) else []


def groups() -> dict[str, tuple[str, ...]]:
    """The corruptions that anything was chosen on, the others, and all of them."""
    others = tuple(name for name in held_out() if name != CLEAN)
    return {
        "the 6 of development": DEVELOPMENT,
        "the 13 others": others,
        "all 19": (*DEVELOPMENT, *others),
        "clean": (CLEAN,),
    }


def answers_table(stored: Stored) -> str:
    """Mean accuracy of each kind of answer."""
    header = ["model, corruptions", "", *KINDS, "queries per image, one view"]
    lines = [header]
    for model in MODELS:
        for group, corruptions in groups().items():
            results = of(stored, model, corruptions)
            if not results:
                continue
            for arm in ("unadapted", "soda-e"):
                means = [mean(result[arm][kind] for result in results) for kind in KINDS]
                queries = mean(result["queries_per_image"] for result in results)
                cost = f"{queries:.1f}" if arm == "soda-e" else "1"
                lines.append([f"{model}, {group}", arm, *(f"{each:.1f}" for each in means), cost])
    return markdown(lines) if len(lines) > 1 else NOT_RUN


def corruptions_table(stored: Stored) -> str:
    """soda-e on each corruption, first model."""
    model = next(iter(MODELS))
    lines = [["corruption", "unadapted", *(f"soda-e: {kind}" for kind in KINDS), "adopted"]]
    for corruption in (*DEVELOPMENT, *held_out()):
        result = stored.get(f"{model}/{corruption}")
        if result is None:
            continue
        accuracies = [result["unadapted"]["plain"], *(result["soda-e"][kind] for kind in KINDS)]
        adopted = "yes" if result["adopted"] else "no"
        name = corruption.replace("_", " ")
        lines.append([name, *(f"{each:.1f}" for each in accuracies), adopted])
    return markdown(lines) if len(lines) > 1 else NOT_RUN


def skewed_table(stored: Stored) -> str:
    """Nine in ten images of two classes."""
    names = {
        "unknown": "nothing stated",
        "true": "stated rightly",
        "balanced": "balanced stated",
        "others": "two other classes stated",
    }
    lines = [["images", "unadapted", *names.values()]]
    for corruption in SKEWED:
        result = stored.get(f"skewed/{corruption}")
        if result is None:
            continue
        cells = []
        for name in names:
            text = f"{result[name]['after']:.1f}"
            text += "" if result[name]["adopted"] else ", kept"
            cells.append(text + (", warning" if result[name]["warned"] else ""))
        lines.append([corruption.replace("_", " "), f"{result['unadapted']:.1f}", *cells])
    return markdown(lines) if len(lines) > 1 else NOT_RUN


def warnings_table(stored: Stored) -> str:
    """How often there is a warning, and what the prior changes."""
    names = {
        "balanced, true": "balanced images, balanced stated",
        "true": "shares drawn at random, stated rightly",
        "wrong": "shares drawn at random, balanced stated",
    }
    lines = [["model, corruptions", "", "warned", "change of the accuracy", "worst"]]
    for model in MODELS:
        for group in ("the 6 of development", "the 13 others"):
            results = of(stored, model, groups()[group])
            for name, text in names.items() if results else ():
                cases = [case for result in results for case in result["warning"][name]]
                warned = mean(bool(case[0]) for case in cases)
                changes = [case[1] for case in cases]
                row = [f"{warned:.0%} of {len(cases)}", f"{mean(changes):+.1f}"]
                lines.append([f"{model}, {group}", text, *row, f"{min(changes):+.1f}"])
    return markdown(lines) if len(lines) > 1 else NOT_RUN


def mixed_table(stored: Stored) -> str:
    """One set of weights, or one for each condition."""
    names = {
        "False": "balanced in each condition",
        "True": "five classes in two conditions, the others in the others",
    }
    kinds = ("plain", "one set", "one each")
    lines = [["classes", *kinds, "conditions found"]]
    for key, text in names.items():
        result = stored.get(f"mixed/{key}")
        if result is not None:
            accuracies = [f"{result[kind]:.1f}" for kind in kinds]
            lines.append([text, *accuracies, f"{result['conditions']:.0f} of {len(MIXED)}"])
    return markdown(lines) if len(lines) > 1 else NOT_RUN


def verdicts_table(stored: Stored) -> str:
    """What the verdict adopts, without and with class weights in both arms."""
    lines = [["images judged", "change of the accuracy", "as returned", "weights in both arms"]]
    cases = [
        case
        for model in MODELS
        for corruption in (*DEVELOPMENT, *held_out())
        for case in stored.get(f"{model}/{corruption}", {}).get("verdicts", [])
    ]
    kinds = {
        "more than 1 point better": lambda gain: gain > POINT,
        "more than 1 point worse": lambda gain: gain < -POINT,
    }
    for count in VERDICT_IMAGES:
        for text, is_kind in kinds.items():
            own = [case for case in cases if case[0] == count and is_kind(case[1])]
            if own:
                rates = [mean(bool(case[arm]) for case in own) for arm in (2, 3)]
                adopted = [f"{rate:.0%} of {len(own)}" for rate in rates]
                lines.append([f"{count:,}", text, *adopted])
    return markdown(lines) if len(lines) > 1 else NOT_RUN


def agreement_table(stored: Stored) -> str:
    """How often answers to the mirror image agree, compared with those to the shifted image."""
    lines = [["model", "agreement with the mirror image / with the shifted image: least", "most"]]
    for model in MODELS:
        results = of(stored, model, (*DEVELOPMENT, *held_out()))
        ratios = [each["agreement"]["mirror"] / each["agreement"]["shift"] for each in results]
        if ratios:
            lines.append([model, f"{min(ratios):.2f}", f"{max(ratios):.2f}"])
    return markdown(lines) if len(lines) > 1 else NOT_RUN
