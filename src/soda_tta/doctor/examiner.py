"""The queries of an examination, and the checks of their responses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from soda_tta.adaptors.bank import SMALLEST
from soda_tta.box import Box, Ledger, Meter, Metered
from soda_tta.box.wrappers.undecided import Undecided
from soda_tta.conventions import FEWEST_IMAGES, MOST_QUERIES, Convention, find_convention
from soda_tta.data import Images
from soda_tta.doctor.advice import HIGH_ACCURACY, check_accuracy
from soda_tta.doctor.balance import EVEN, check_balance, evenness
from soda_tta.doctor.convention import check_found, check_stated, check_too_few
from soda_tta.doctor.finding import Finding
from soda_tta.doctor.logits import check_logits
from soda_tta.doctor.probabilities import (
    SAME,
    check_completeness,
    check_digits,
    check_repeatability,
    check_saturation,
    check_sums,
)
from soda_tta.doctor.sensitivity import check_sensitivity
from soda_tta.doctor.shift import check_shift
from soda_tta.doctor.trial import FEWEST, RESTORATIONS, try_restorations
from soda_tta.engine.working_size import at_working_size
from soda_tta.errors import BoxUnavailable, ImageError, SodaError
from soda_tta.judging.balanced import agreement_score, check_rows, classes_alone
from soda_tta.judging.estimate import Estimate, estimate_accuracy
from soda_tta.types import Array, Purpose

Progress = Callable[[int, int], None]
BATCH = 128  # images per call: a failure loses no more, and progress is visible
SUBSET = 32  # images that are queried again, or perturbed
TRIED = 120  # images per restoration
FEWEST_TO_COMPARE = 20  # images of either set; with fewer the test for a shift has no power


@dataclass
class Examiner:
    """Queries the model in several stages. If a stage fails, the findings so far are kept."""

    images: Images
    box: Box
    clean: Images | None
    clean_accuracy: float | None
    sample: int
    seed: int
    progress: Progress
    check_input: bool = False
    convention: Convention | None = None
    findings: list[Finding] = field(default_factory=list)
    estimate: Estimate | None = None
    looks_right: bool = False  # confident predictions, evenly spread over the classes
    probabilities: Array | None = None  # of the chosen images
    clean_probabilities: Array | None = None
    noise: float = 0.0  # the largest difference between two responses to the same image
    failure: str | None = None

    def __post_init__(self) -> None:
        generator = np.random.default_rng(self.seed)
        clean_count = 0 if self.clean is None else len(self.clean)
        self.chosen = np.sort(generator.permutation(len(self.images))[: self.sample])
        self.chosen_clean = np.sort(generator.permutation(clean_count)[: self.sample])
        searched = self.check_input or isinstance(self.box, Undecided)
        extra = MOST_QUERIES if searched else 0
        self.ledger = Ledger(2 * (len(self.chosen) + len(self.chosen_clean)) + extra)

    def run(self) -> None:
        """All stages in turn, until one fails."""
        stages = {
            "finding the input convention": self.find_input,
            "querying the images": self.query_images,
            "querying the clean images": self.query_clean_images,
            "querying the same images again": self.repeat_queries,
            "querying images changed by one 8-bit step": self.perturb_images,
            "trying simple restorations": self.restore_images,
        }
        unavailable = False
        for description, stage in stages.items():
            try:
                stage()
            except SodaError as error:  # from the model, or from an image that cannot be read
                if isinstance(error, ImageError) and self.probabilities is None:
                    raise  # no query was made yet, and the model is not the cause
                queries = self.ledger.total
                self.failure = f"{description} failed after {queries:,} queries: {error}"
                unavailable = isinstance(error, BoxUnavailable)
                break
        if self.probabilities is None:
            self.findings.append(self._no_response(unavailable))

    def find_input(self) -> None:
        """Find what the model expects of its pixels, or check what is stated; then fit images."""
        source = self.images if self.clean is None else self.clean
        wanted = self.check_input or isinstance(self.box, Undecided)
        if wanted and len(source) < FEWEST_IMAGES:
            self.findings.append(check_too_few(len(source)))
        elif wanted:
            meter = Meter(self.box, self.ledger)
            found = find_convention(
                source,
                self.box,
                check=self.check_input,
                most_images=max(FEWEST_IMAGES, self.sample),
                seed=self.seed,
                meter=meter,
                progress=self.progress,
            )
            self.convention = found
            self.findings.append(
                check_stated(found, self.box.input) if self.check_input else check_found(found)
            )
        if isinstance(self.box, Undecided):
            usable = None if self.convention is None else self.convention.usable
            self.box = self.convention.box if self.convention and usable else self.box.box
        self.images = at_working_size(self.images, self.box.input.view)
        if self.clean is not None:
            self.clean = at_working_size(self.clean, self.box.input.view)

    def _no_response(self, unavailable: bool) -> Finding:
        """The finding if not even the first call of the model succeeded."""
        remedy = self.failure or ""
        if unavailable:
            sentence = "The model did not respond."
            return Finding(name="answers", state="caution", sentence=sentence, remedy=remedy)
        sentence = "The model returned no usable response."
        return Finding(name="answers", state="bad", sentence=sentence, remedy=remedy)

    def query(self, images: Array, purpose: Purpose = "probe") -> Array:
        """Query the model, count the queries and report the progress."""
        rows = Metered(self.box, self.ledger, purpose)(images)
        self.progress(self.ledger.total, self.ledger.limit or 0)
        return rows

    def query_all(
        self, images: Images, chosen: Array, purpose: Purpose, keep: Callable[[Array], None]
    ) -> None:
        """Query the chosen images in batches.

        `keep` receives all rows there are, even after a failure, which loses only its batch.
        """
        rows: list[Array] = []
        try:
            batch = min(BATCH, images.at_once)
            for start in range(0, len(chosen), batch):
                rows.append(self.query(images[chosen[start : start + batch]], purpose))
        finally:
            if rows:
                keep(np.concatenate(rows))

    def query_images(self) -> None:
        """One query per image, and the checks of the probabilities."""

        def keep(rows: Array) -> None:
            self.probabilities = rows
            self.findings.append(check_sums(rows, partial=self.box.partial))
            twice = check_logits(rows) if self.box.logits else None
            self.findings += [] if twice is None else [twice]
            checks = (check_digits, check_completeness, check_saturation)
            self.findings += [check(rows) for check in checks]
            if self.clean is None:
                self.compare(None)

        self.query_all(self.images, self.chosen, "select", keep)

    def query_clean_images(self) -> None:
        """One query per clean image, and the comparison of both sets."""
        if self.clean is None:
            return

        def keep(rows: Array) -> None:
            self.clean_probabilities = rows

        try:
            self.query_all(self.clean, self.chosen_clean, "clean", keep)
        finally:
            self.compare(self.clean_probabilities)

    def compare(self, clean: Array | None) -> None:
        """Accuracy and balance, and the shift if there are enough clean images."""
        assert self.probabilities is not None
        if clean is not None and len(clean) < FEWEST_TO_COMPARE:
            clean = None
        shares = None
        if clean is not None and evenness(clean.argmax(axis=1), clean.shape[1]) < EVEN:
            shares = clean.mean(axis=0)  # better than to assume balanced classes
        estimate = estimate_accuracy(
            self.probabilities, clean=clean, clean_accuracy=self.clean_accuracy
        )
        rows = check_rows(self.probabilities)
        agreement = agreement_score(rows, shares)
        self.looks_right = agreement >= HIGH_ACCURACY and not classes_alone(rows)
        if isinstance(estimate, Estimate):
            self.estimate = estimate
        if clean is not None and len(self.probabilities) >= FEWEST_TO_COMPARE:
            shift = check_shift(
                self.probabilities,
                clean,
                agreement=agreement,
                clean_agreement=agreement_score(check_rows(clean), shares),
                seed=self.seed,
            )
            self.findings.append(shift)
        self.findings.append(check_balance(self.probabilities, clean))
        self.findings.append(check_accuracy(estimate, agreement))

    def repeat_queries(self) -> None:
        """Query some images again in a different batch, and once more if responses differ."""
        count = self.subset_size(queries_per_image=2)
        if not count:
            return
        assert self.probabilities is not None
        images = self.images[self.chosen[:count]][::-1].copy()
        first = self.probabilities[:count][::-1]
        second = self.query(images)
        self.noise = float(np.abs(first - second).max())
        third = self.query(images) if self.noise > SAME else None
        self.findings.append(check_repeatability(first, second, third))

    def perturb_images(self) -> None:
        """Query some images changed by one 8-bit step."""
        count = self.subset_size(queries_per_image=5)
        if not count:
            return
        assert self.probabilities is not None
        several_classes = len(np.unique(self.probabilities.argmax(axis=1))) > 1
        self.findings += check_sensitivity(
            self.images[self.chosen[:count]],
            self.query,
            self.box.quantum,
            noise=self.noise if self.noise > SAME else 0.0,
            seed=self.seed,
            classes_only=several_classes and classes_alone(self.probabilities),
        )

    def restore_images(self) -> None:
        """Spend the remaining queries on simple restorations of some images."""
        affordable = self.left // len(RESTORATIONS)
        count = min(TRIED, len(self.chosen), affordable)
        if count < FEWEST or min(self.images.size) < SMALLEST:
            return
        assert self.probabilities is not None
        generator = np.random.default_rng(self.seed)
        positions = np.sort(generator.permutation(len(self.chosen))[:count])
        chosen = self.chosen[positions]
        batch = self.images.at_once
        batches = (self.images[chosen[start : start + batch]] for start in range(0, count, batch))
        finding = try_restorations(batches, self.probabilities[positions], self.query, self.seed)
        self.findings.append(finding)

    @property
    def left(self) -> int:
        """Queries that are left; what was set aside for the convention is not for anything else."""
        spent = self.ledger.by_purpose().get("convention", 0)
        unspent = MOST_QUERIES - spent if self.convention is not None else 0
        return (self.ledger.left or 0) - unspent

    def subset_size(self, queries_per_image: int) -> int:
        """How many images to query so often; 0 if the remaining queries are not enough."""
        affordable = self.left // queries_per_image
        return min(SUBSET, max(1, len(self.chosen) // 8), affordable)
