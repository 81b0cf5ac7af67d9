"""Write the tables of docs/research/reproduction.md from the stores under results/.

    python benchmarks/reproduction.py            # update the page and its figures
    python benchmarks/reproduction.py --check    # fail if the page differs from the stores

Between the markers of an experiment the page has its table, the claims of the paper with whether
they hold here, and the settings of the runs. The text outside the markers is left alone.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import gradient_error
import random_walk
import rate_choice
import reliable_labels
import running_statistics
import starts
from claims import Judgement
from experiment_tables import ExperimentText, describe_experiment
from pages import NOT_RUN, markdown, replace_tables
from paper_numbers import EXPERIMENTS
from paper_rows import NOT_IN_PAPER
from soda_tta.bench import Store
from soda_tta.bench.figure_data import convergence
from soda_tta.bench.figures import draw_figure, figure_facts

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "research" / "reproduction.md"
RESULTS = ROOT / "results"
FIGURES = {  # grid: kind of figure and caption; drawn into the folder figures/ next to the page
    "cifar10": ("queries", "Accuracy against queries per image"),
    "points": ("points", "Accuracy by the number of images"),
    "selection": ("heat", "Accuracy by tau and rho: one map per alpha, one row per corruption"),
    "convergence": ("convergence", "Accuracy by epoch"),
}


def page_tables(results: Path = RESULTS) -> dict[str, str]:
    """Every generated text of the page by the name of its marker."""
    rates = Store(results / "rates")
    tables = {
        "gradient-error": gradient_error.table(results / "gradient_error.json"),
        "random-walk": random_walk.table(results / "random_walk.json"),
        "starts": starts.table(results / "starts.json", ("gaussian_noise", "contrast")),
        "starts-office-home": starts.table(
            results / "starts_office_home.json", ("pacs/sketch", "pacs/cartoon")
        ),
        "running-statistics": running_statistics.table(results / "running_statistics.json"),
        "reliable-labels": reliable_labels.table(results / "reliable_labels.json"),
        "rate-ends": rate_choice.final_loss_table(rates),
        "rate-choice": rate_choice.schedule_table(rates),
        "rate-kept-ends": rate_choice.final_loss_table(Store(results / "rates-kept")),
        "rate-cifar100-ends": rate_choice.final_loss_table(
            Store(results / "rates-cifar100"), "cifar100"
        ),
    }
    judgements: dict[str, tuple[Judgement, ...]] = {}
    for experiment in EXPERIMENTS:
        described = ExperimentText(NOT_RUN)
        text = NOT_RUN
        if (results / experiment.grid / "results.jsonl").exists():
            store = Store(results / experiment.grid)
            described = describe_experiment(experiment, store)
            text = with_figure(experiment.grid, described.text, store)
        tables[experiment.grid] = text
        judgements[experiment.grid] = described.judgements
    return {"summary": summary(judgements), **tables}


def with_figure(grid: str, text: str, store: Store) -> str:
    """The text of an experiment with its learning curves and its figure, if it has any."""
    if text == NOT_RUN:
        return text
    if grid.startswith("convergence"):
        text = f"{text}\n\n{curve_table(store)}"
    if grid in FIGURES:
        text = f"{text}\n\n![{FIGURES[grid][1]}](figures/{grid}.svg)"
    return text


def curve_table(store: Store) -> str:
    """Where each learning curve ends, and how soon it has half of its gain."""
    lines = [["", "unadapted", "at the end", "highest", "half of the gain after", "epochs"]]
    for name, points in convergence(store)["series"].items():
        accuracies = [point["accuracy"] for point in points]
        start = accuracies[0]
        end = accuracies[-1]
        half = "no gain"
        if end > start:
            epoch = next(p["epoch"] for p in points if p["accuracy"] >= (start + end) / 2)
            half = f"epoch {epoch}"
        shown = [f"{value:.1f}" for value in (start, end, max(accuracies))]
        lines.append([name, *shown, half, str(points[-1]["epoch"])])
    return markdown(lines)


def summary(judgements: dict[str, tuple[Judgement, ...]]) -> str:
    """How many of the paper's claims hold here, and a table of those that do not."""
    lines: dict[str, list[list[str]]] = {"yes": [], "no": [], "undecided": []}
    for experiment in EXPERIMENTS:
        if experiment.paper == NOT_IN_PAPER:
            continue
        link = f"[{experiment.title}](#{anchor(experiment.title)})"
        for judgement in judgements.get(experiment.grid, ()):
            if judgement.outcome in lines and not judgement.claim.additional:
                sentence = judgement.claim.sentence
                line = [link, sentence, judgement.accuracies, judgement.outcome]
                lines[judgement.outcome].append(line)
    counts = {outcome: len(rows) for outcome, rows in lines.items()}
    total = sum(counts.values())
    if not total:
        return NOT_RUN
    header = ["experiment", "claim of the paper", "here", "holds?"]
    return (
        f"Of {total} claims that the paper makes about these experiments, {counts['yes']} hold "
        f"here, {counts['no']} do not hold and {counts['undecided']} are undecided. Those that do "
        "not hold or are undecided:\n\n" + markdown([header, *lines["no"], *lines["undecided"]])
    )


def anchor(title: str) -> str:
    """The link target that GitHub gives a heading.

    >>> anchor("CIFAR-10-C, every method (the main table)")
    'cifar-10-c-every-method-the-main-table'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def draw_figures() -> None:
    """Draw the figures of the page from the stores."""
    for grid, (kind, _) in FIGURES.items():
        store = Store(RESULTS / grid)
        if len(store):
            draw_figure(figure_facts(store, kind), PAGE.parent / "figures" / f"{grid}.svg")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the page is out of date"
    )
    options = parser.parse_args()
    stored = PAGE.read_text()
    fresh = replace_tables(stored, page_tables())
    if not options.check:
        PAGE.write_text(fresh)
        draw_figures()
    elif fresh != stored:
        sys.exit("docs/research/reproduction.md is out of date: python benchmarks/reproduction.py")


if __name__ == "__main__":
    main()
