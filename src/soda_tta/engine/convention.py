"""Find the input convention of a run's model before the run, within its budget."""

from __future__ import annotations

from pathlib import Path

from soda_tta.box import Box, Ledger, Meter
from soda_tta.box.wrappers.undecided import Undecided
from soda_tta.conventions import MOST_QUERIES, Convention, find_convention
from soda_tta.data import Images
from soda_tta.engine.events import Listener, Notice, Planned, Responded, Waiting
from soda_tta.engine.plan import Plan
from soda_tta.errors import BoxError
from soda_tta.storage.run_folder import RunFolder


def most_queries(box: Box) -> int:
    """The most queries that finding the convention of a model takes."""
    return MOST_QUERIES if isinstance(box, Undecided) else 0


def decide(
    box: Box, images: Images, seed: int, out: str | Path | None, listener: Listener
) -> tuple[Box, Convention | None]:
    """The model with its convention: found from the images, or read from the card of the run.

    A process that is killed meanwhile loses no response: those received are replayed.

    Parameters
    ----------
    box : Box
        One that is not `Undecided` is returned as it is.
    images : Images
        In their own size; clean ones, if there are any.
    seed : int
    out : path or None
        The folder of the run.
    listener : callable
        Receives events.
    """
    if not isinstance(box, Undecided):
        return box, None
    folder = RunFolder(out)
    if folder.holds_run:
        kept = folder.read_card().get("convention")
        if kept is not None:
            found = Convention.from_card(kept, box.box)
            return found.box, found
    identity = f"{box.fingerprint()} {images.fingerprint()} {seed}"
    with RunFolder.preparing(out, identity) as working:
        ledger = Ledger(MOST_QUERIES, working.book())
        transcript = working.transcript("convention")
        meter = Meter(box.box, ledger, transcript, lambda *wait: listener(Waiting(*wait)))
        meter.responded = lambda *response: listener(Responded(*response))
        plan = Plan(len(images), epochs=0, queries={"convention": MOST_QUERIES}, limit=MOST_QUERIES)
        listener(Planned(plan, ledger))
        found = find_convention(images, box, seed=seed, meter=meter)
    if not found.usable:
        raise BoxError(refusal(found))
    listener(Notice(notice(found)))
    return found.box, found


def refusal(found: Convention) -> str:
    """Why a run does not go on with a guess."""
    answer = found["pixels"]
    choices = " or ".join(
        " ".join(options) or "the defaults" for options in (found.options, found.alternative)
    )
    return (
        f"the input convention is not clear: {answer.sentence}. State the right one yourself "
        f"({choices}), or find it from clean images with soda-tta doctor."
    )


def notice(found: Convention) -> str:
    """What a run tells about the convention it uses."""
    stated = " ".join(found.options) or "the defaults"
    texts = [answer.sentence for answer in found.answers if answer.question != "mirror"]
    spent = f"{found.queries:,} queries"
    return f"Input convention ({spent}): {'; '.join(texts)}. To state it next time: {stated}."
