"""What a verdict refused is kept, and can be judged again without another search."""

from dataclasses import replace

import numpy as np
import pytest

from soda_tta import Run, adapt, rejudge
from soda_tta.adaptors import Bank, Identity
from soda_tta.adaptors.bank import NAMES
from soda_tta.errors import BudgetError, ImageError, RunError
from soda_tta.judging.candidate import Candidate
from soda_tta.judging.verdict import Verdict, moved

CLASSES = 4
KEEP = Verdict(
    adopt=False, sentence="Keep: ...", before=0.1, after=0.2, p_value=0.2, level=0.01, images=40
)


def brightness(images: np.ndarray) -> np.ndarray:
    """The model: it recognises four grey levels, and nothing in images that are too dark."""
    level = images.mean(axis=(1, 2, 3))
    centres = np.array([0.3, 0.45, 0.6, 0.75])
    logits = -400 * (level[:, None] - centres) ** 2
    logits[level < 0.28] = [3, 0, 0, 0]
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def dark(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images 0.3 darker than the model expects, and their classes."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, CLASSES, count)
    levels = np.array([0.3, 0.45, 0.6, 0.75])[labels] - 0.3
    texture = 0.1 * generator.standard_normal((count, 3, 16, 16))
    images = np.clip(levels[:, None, None, None] + texture, 0, 1)
    return images.astype(np.float32), labels


def brighter(amount: float = 0.27):
    adaptor = Bank.for_size((16, 16)).build()
    adaptor.parameters[NAMES.index("brightness")] = amount
    return adaptor


@pytest.fixture
def refused() -> tuple[Run, np.ndarray]:
    """A run that kept its images as they are, with the candidate that it refused."""
    images, labels = dark(80, seed=0)
    run = adapt(images, brightness, method="deployed")
    judged = np.arange(20, 60)
    adaptor = brighter()
    adapted = adaptor(images[judged])
    candidate = Candidate(
        adaptor=adaptor,
        judged=judged,
        scenes=np.arange(40),
        searched=np.arange(20),
        moved_before=brightness(moved(images[judged])).astype(np.float32),
        after=brightness(adapted).astype(np.float32),
        moved_after=brightness(moved(adapted)).astype(np.float32),
    )
    return replace(run, verdict=KEEP, candidate=candidate), labels


def test_labels_decide_without_a_query(refused) -> None:
    run, labels = refused
    judged = rejudge(run, labels=labels)
    assert judged.verdict.adopt and judged.verdict.basis == "labels"
    assert judged.verdict.images == 40  # those of the search and those never adapted do not count
    assert judged.ledger.total == run.ledger.total
    assert judged.adaptor is run.candidate.adaptor
    np.testing.assert_array_equal(judged.probabilities[20:60], run.candidate.after)
    np.testing.assert_array_equal(judged.probabilities[:20], run.before[:20])
    assert judged.unreached == 40
    assert judged.earlier_verdicts == [KEEP]


def test_labels_of_the_images_of_the_search_do_not_count(refused) -> None:
    run, labels = refused
    only_searched = np.where(np.arange(80) < 20, labels, -1)
    judged = rejudge(run, labels=only_searched)
    assert judged.verdict.images == 0 and not judged.verdict.adopt


def test_labels_revoke_an_adoption(refused) -> None:
    run, _labels = refused
    adopted = rejudge(run, accept=True)
    assert adopted.verdict.adopt and adopted.verdict.basis == "user"
    wrong = (adopted.probabilities.argmax(axis=1) + 1) % CLASSES
    wrong = np.where(
        adopted.probabilities.argmax(1) != run.before.argmax(1), run.before.argmax(1), wrong
    )
    revoked = rejudge(adopted, labels=wrong)
    assert not revoked.verdict.adopt
    assert isinstance(revoked.adaptor, Identity)
    np.testing.assert_array_equal(revoked.probabilities, run.before)
    assert len(revoked.earlier_verdicts) == 2


def test_more_images_are_judged_together_with_the_first_at_half_the_rate(refused) -> None:
    run, _ = refused
    more, _ = dark(60, seed=1)
    sent = []

    def counting(images: np.ndarray) -> np.ndarray:
        sent.append(len(images))
        return brightness(images)

    judged = rejudge(run, images=more, box=counting)
    assert judged.verdict.images == 100 and judged.verdict.level == 0.005
    assert sum(sent) == 4 * 60
    assert judged.ledger.queries["judge"] == 4 * 60
    assert judged.verdict.adopt
    part = rejudge(run, images=more, box=brightness, budget=1)
    assert part.verdict.images == 40 + 15


def test_what_cannot_be_judged_is_refused_with_the_remedy(refused) -> None:
    run, labels = refused
    images, _ = dark(80, seed=0)
    with pytest.raises(ImageError, match="images of the run itself"):
        rejudge(run, images=images, box=brightness)
    with pytest.raises(BudgetError, match="raise the budget"):
        rejudge(run, images=dark(3, seed=2)[0], box=brightness, budget=0.1)
    with pytest.raises(ImageError, match=r"these images are 10x8 pixels .* same size"):
        rejudge(run, images=np.zeros((9, 3, 8, 10), np.float32), box=brightness)
    with pytest.raises(RunError, match="one of labels="):
        rejudge(run)
    with pytest.raises(RunError, match="no candidate"):
        rejudge(replace(run, candidate=None), labels=labels)


def test_a_candidate_survives_saving_and_says_what_would_settle_it(refused, tmp_path) -> None:
    run, labels = refused
    steps = run.next_steps
    assert any("brighter" in step for step in steps) and any("label" in step for step in steps)
    run.save(tmp_path / "run")
    loaded = Run.load(tmp_path / "run")
    assert loaded.next_steps == steps
    rows = (tmp_path / "run" / "label-these.csv").read_text().splitlines()
    assert rows[0] == "file,label"
    assert len(rows) - 1 == len(run.candidate.changed(run.before))
    judged = rejudge(loaded, labels=labels)
    judged.save(tmp_path / "run")
    again = Run.load(tmp_path / "run")
    assert again.verdict == judged.verdict and again.earlier_verdicts == [KEEP]
    assert again.adaptor.describe() == run.candidate.adaptor.describe()
