"""Build the page that fits the subjects: one run, several runs, or a bench store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from soda_tta.box.price import Price, as_price
from soda_tta.data import Images
from soda_tta.engine.clean import check_accuracy
from soda_tta.engine.run import Run
from soda_tta.errors import ImageError, RunError
from soda_tta.report.analysis import Analysis, analyse
from soda_tta.report.commands import recorded_option
from soda_tta.report.comparison_page import comparison_page
from soda_tta.report.examples import open_run_images
from soda_tta.report.headline import headline
from soda_tta.report.labels import Labels, check_class_names, read_classes, read_labels
from soda_tta.report.record import RunRecord, read_record, record_of
from soda_tta.report.run_page import run_page


def build_page(
    subjects: list[Any],
    *,
    images: Any,
    labels: Any,
    classes: Any,
    price: Price | float | str | None,
    clean: Any = None,
    clean_accuracy: float | None = None,
) -> tuple[str, dict[str, Any]]:
    """The HTML of a page, and its content as plain JSON; see `write_report`."""
    if not subjects:
        raise RunError("there is nothing to report on. Pass a run or a run directory.")
    if any(_is_store(subject) for subject in subjects):
        if len(subjects) > 1:
            raise RunError(
                "a bench store needs a page of its own. "
                "Merge several stores with 'soda-tta bench merge' first."
            )
        # imported here because the bench needs many modules that a run's page does not
        from soda_tta.report.bench_page import bench_page

        return bench_page(Path(subjects[0]))
    records = [_record(subject) for subject in subjects]
    for record in records:
        specify_clean(record, clean, clean_accuracy)
    number_equal_titles(records)
    class_names = None if classes is None else read_classes(classes)
    labels_of_runs = [_read_labels_of(record, labels, class_names) for record in records]
    analyses = [
        analyse(record, run_labels, class_names, as_price(price))
        for record, run_labels in zip(records, labels_of_runs, strict=True)
    ]
    pictures = (
        recorded_images(records[0]) if images is None else open_run_images(images, records[0])
    )
    if len(analyses) == 1:
        page = run_page(analyses[0], labels_of_runs[0], pictures)
        return page, facts_of(analyses[0])
    page = comparison_page(analyses, labels_of_runs[0], pictures)
    return page, {"runs": [facts_of(analysis) for analysis in analyses]}


def _record(subject: Any) -> RunRecord:
    return record_of(subject) if isinstance(subject, Run) else read_record(Path(subject))


def specify_clean(record: RunRecord, clean: Any, clean_accuracy: float | None) -> None:
    """Give a record the clean responses and the accuracy that the caller specifies."""
    if clean is not None:
        other = _record(clean)
        models = {each.card.get("box", {}).get("fingerprint") for each in (record, other)}
        if len(models) > 1:
            raise RunError(
                f"{other.title} is a run of another model than {record.title}; clean images must "
                "be answered by the same model."
            )
        record.clean = other.before
    if clean_accuracy is None:
        return
    if record.clean is None:
        raise RunError(
            f"clean_accuracy needs responses to clean images, and {record.title} has none: pass "
            "clean= with a run of 'deployed' on clean images."
        )
    check_accuracy(clean_accuracy)
    record.clean_accuracy = clean_accuracy


def _is_store(subject: Any) -> bool:
    return not isinstance(subject, Run) and (Path(subject) / "results.jsonl").exists()


def facts_of(analysis: Analysis) -> dict[str, Any]:
    """The content of a run's page as plain JSON."""
    conclusion = headline(analysis)
    return {"headline": [f"{conclusion.word}.", *conclusion.sentences], **analysis.facts()}


def _read_labels_of(
    record: RunRecord, labels: Any, classes: tuple[str, ...] | None
) -> Labels | None:
    """The labels in the order of the run's images; None without labels or predictions."""
    if record.before is None:
        return None
    class_count = record.before.shape[1]
    if classes is not None:
        check_class_names(classes, class_count)
    if labels is None:
        return None
    names = [record.name(index) for index in range(record.count)]
    return read_labels(labels, names, classes, class_count)


def recorded_images(record: RunRecord) -> Images | None:
    """The images at the place the run's command names, if they are still there unchanged."""
    path = recorded_option(record, "--images")
    if path is None or not Path(path).exists():
        return None
    try:
        return open_run_images(path, record)
    except ImageError:
        return None


def number_equal_titles(records: list[RunRecord]) -> None:
    """Number the runs that share a title."""
    counts: dict[str, int] = {}
    for record in records:
        counts[record.title] = counts.get(record.title, 0) + 1
        if counts[record.title] > 1:
            record.title += f" ({counts[record.title]})"
