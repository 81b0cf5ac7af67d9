"""`adapt`: learn from unlabelled images how to change them so that the deployed model does better."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta._version import __version__
from soda_tta.adaptors import Adaptor, Identity
from soda_tta.box import Box, Ledger, Metered, Transcript, load_box
from soda_tta.data import Images, open_images
from soda_tta.engine.events import Epoch, Event, Listener, Notice, Planned, Step
from soda_tta.engine.loop import Training
from soda_tta.engine.passes import Stopped, answer_all
from soda_tta.engine.plan import RUNGS, Plan, plan_run
from soda_tta.engine.rounding import LOOKED_AT, drowned_probes
from soda_tta.engine.run import FORMAT, Run, versions
from soda_tta.engine.step import Task
from soda_tta.errors import BoxError, MethodError
from soda_tta.methods import LoopMethod, Method, Work, find_method
from soda_tta.methods.method import outcome_of
from soda_tta.methods.soda import soda
from soda_tta.storage.run_folder import WORKING, finished_run, forget, opened_folder
from soda_tta.storage.stopwatch import Stopwatch
from soda_tta.types import Array

PAPER_STEPS = 6000  # 150 epochs of 10,000 images in batches of 256


def adapt(
    images: Any,
    box: Any,
    method: str | Method = "soda-e",
    budget: float | None = None,
    seed: int = 0,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    stop: Callable[[], bool] = lambda: False,
    listener: Listener | None = None,
    command: list[str] | None = None,
    **settings: Any,
) -> Run:
    """Adapt unlabelled `images` to the deployed model `box`; neither labels nor the model's inside are used.

    `budget`: at most so many queries an image, all purposes together. `settings` change the method (q=10, lr="auto").
    `out`: a directory that receives the run and, while it works, all that is needed to continue it with
    `resume=True` after a kill. `stop` is asked after every step; `listener` receives events; `command` is what a user
    typed, for the report to repeat.
    """
    clock = Stopwatch()
    source, deployed = open_images(images), load_box(box)
    recipe = find_method(method).but(**settings)
    plan = plan_run(recipe, len(source), budget)
    check_call(recipe, source, deployed, seed)
    notices: list[Notice] = []
    tell = _teller(listener, notices, clock)
    card = protocol_card(recipe, plan, source, deployed, budget, seed)
    if command is not None:
        card["command"] = command
    with opened_folder(out, card, resume) as folder:
        if folder and resume and (finished := finished_run(folder)):
            shutil.rmtree(
                folder / WORKING, ignore_errors=True
            )  # a kill may have come between the last file and this
            tell(Notice(f"{folder} is finished already; nothing was asked."))
            return finished
        if folder:
            (folder / WORKING).mkdir(exist_ok=True)
            clock.keep(folder / WORKING / "seconds.txt")
        # what is lost in a kill was paid to somebody else, but for passes through a model of our own
        book = (
            folder / WORKING / "ledger.txt" if folder and recipe.needs == "probabilities" else None
        )
        ledger = Ledger(plan.limit, book)
        tell(Planned(plan, ledger))

        def answers(
            adaptor: Adaptor,
            purpose: str,
            otherwise: Array | None = None,
            known: Array | None = None,
        ) -> Array:
            path = folder / WORKING / f"{purpose}.answers" if folder else None
            return answer_all(
                source,
                adaptor,
                Metered(deployed, ledger, purpose),
                path,
                stop,
                tell,
                otherwise,
                known,
            )

        try:
            before = answers(Identity(), "select")
        except Stopped:
            raise KeyboardInterrupt from None  # there is nothing to show yet; what was paid is kept for a resume
        except BoxError:
            if folder and not resume and not any((folder / WORKING).glob("*.answers")):
                forget(
                    folder
                )  # the very first request failed, most often for a wrong option: no run to keep
            raise
        card["box"]["classes"] = before.shape[1]
        adaptor: Adaptor = Identity()
        after: Array | None = before
        history: list[Step] = []
        stopped = "budget" if plan.shortened else "finished"
        verdict, reason = None, None
        if isinstance(recipe, Method):
            transcript = Transcript(folder / WORKING / "asked.transcript") if folder else None
            given = Work(
                source, deployed, before, ledger, seed, _recorder(history, tell, stop), transcript
            )
            for text in recipe.notices(given):
                tell(Notice(text))
            outcome = outcome_of(recipe, given)
            for text in outcome.notices:
                tell(Notice(text))
            if transcript:
                transcript.end(ledger.lost)
            stopped = "budget" if outcome.short else stopped
            adaptor, verdict, reason, after = (
                outcome.adaptor,
                outcome.verdict,
                outcome.reason,
                outcome.probabilities,
            )
            if after is None:
                try:
                    after = answers(adaptor, "evaluate", otherwise=before, known=outcome.known)
                except Stopped:
                    raise KeyboardInterrupt from None  # what was paid is kept for a resume
        elif plan.learns:
            assert recipe.adaptor is not None
            selection = recipe.reliable(before)
            card["reliable"] = int(selection.reliable.sum())
            adaptor = recipe.adaptor.build(seed)
            task = Task(
                source,
                deployed,
                ledger,
                selection,
                recipe.objective,
                recipe.batch,
                seed,
                reserve=len(source),
            )
            for text in _warnings(recipe, plan, task, adaptor):
                tell(Notice(text))
            training, interrupted = _learn(recipe, plan, task, adaptor, folder, stop, tell)
            history = training.history
            if len(recipe.learning_rates) > 1:
                card["chosen_lr"] = training.length
            theta = training.search.theta
            if training.epoch < plan.epochs:
                stopped = "budget"  # requests that were lost have eaten some of it
            if interrupted:
                stopped, after = "interrupted", None
                theta = training.best_theta if training.epoch else theta
            adaptor.parameters = theta.astype(np.float32)
            if not interrupted:
                try:
                    after = answers(adaptor, "evaluate", otherwise=before)
                except Stopped:
                    stopped, after = "interrupted", None
        if after is not None and recipe.settings.get("average") is True:
            after = (before + after) / 2  # both are paid already
        clock.note()  # an interrupted run goes on from here
        run = Run(
            before=before,
            after=after,
            adaptor=adaptor,
            ledger=ledger,
            history=history,
            stopped=stopped,
            reason=reason or _reason(stopped, plan, recipe, history),
            card=card,
            names=[source.name(index) for index in range(len(source))],
            seconds=clock.seconds,
            notices=[notice.text for notice in notices],
            unreached=sum(notice.unreached for notice in notices),
            verdict=verdict,
        )
        if folder:
            run.save(folder)
            if stopped != "interrupted":
                shutil.rmtree(folder / WORKING, ignore_errors=True)
        return run


def check_call(recipe: Method, images: Images, box: Box, seed: int) -> None:
    """What can be known to fail before the first query is paid."""
    if seed < 0:
        raise MethodError(f"seed {seed} is negative; give 0 or more.")
    if recipe.needs != "probabilities":
        _ = box.module  # refuses a box that does not show its inside
    if isinstance(recipe, LoopMethod) and recipe.adaptor is not None and recipe.epochs:
        recipe.adaptor.build(seed)(images[slice(0, 1)])  # refuses images that are too small
        recipe.check_size()


def _learn(
    recipe: LoopMethod,
    plan: Plan,
    task: Task,
    adaptor: Adaptor,
    folder: Path | None,
    stop: Callable[[], bool],
    tell: Listener,
) -> tuple[Training, bool]:
    """Train; with several learning rates, let them race and keep the better ones by their loss, without labels.

    The rivals share every batch and every direction, so that they differ in nothing but the learning rate.
    """
    rivals = [
        Training(
            task,
            adaptor,
            recipe.start(adaptor, task.seed, lr),
            folder / WORKING / f"lr-{lr:g}" if folder else None,
        )
        for lr in recipe.learning_rates or (recipe.step.lr,)
    ]
    for rung, (_, kept) in zip(plan.rungs, RUNGS, strict=False):  # no rungs where there is one rate
        for rival in rivals:
            for step in rival.advance(rung, "tune"):
                _tell_step(step, rival, tell)
                if stop():
                    return min(rivals, key=lambda r: r.best_loss), True
        # by the loss at the rung: a resumed rival may be further on than that
        rivals = sorted(rivals, key=lambda rival: rival.epoch_loss(rung))[:kept]
    (training,) = rivals
    for step in training.advance(plan.epochs, "probe"):
        _tell_step(step, training, tell)
        if stop():
            return training, True
    return training, False


def _tell_step(step: Step, training: Training, tell: Listener) -> None:
    tell(step)
    if step.step == step.of:
        training.adaptor.parameters = training.search.theta.astype(np.float32)
        rival = training.history[
            0
        ].lr  # what tells it from others; evolution reports its deviation, which changes
        spent = training.task.ledger.answered
        tell(Epoch(step.epoch, rival, training.epoch_loss(step.epoch), spent, training.adaptor))


def protocol_card(
    recipe: Method, plan: Plan, images: Images, box: Box, budget: float | None, seed: int
) -> dict[str, Any]:
    """Everything that decides what a run computes."""
    return {
        "format": FORMAT,
        "soda_tta": __version__,
        "method": recipe.name,
        "settings": recipe.settings,
        "seed": seed,
        "budget": budget,
        "images": {
            "count": len(images),
            "size": list(images.size),
            "fingerprint": images.fingerprint(),
        },
        "box": box.card(),
        "versions": versions(),
        "plan": {
            "epochs": plan.epochs,
            "rungs": list(plan.rungs),
            "queries": plan.queries,
            "limit": plan.limit,
        },
    }


def _teller(listener: Listener | None, notices: list[Notice], clock: Stopwatch) -> Listener:
    def tell(event: Event) -> None:
        clock.tick()
        if isinstance(event, Notice):
            notices.append(event)
            if listener is None:
                warnings.warn(event.text, stacklevel=3)
        if listener is not None:
            listener(event)

    return tell


def _recorder(
    history: list[Step], tell: Listener, stop: Callable[[], bool]
) -> Callable[[Step], None]:
    """A procedure's steps go into the history and to the listener; it has no half-way state worth keeping."""

    def record(step: Step) -> None:
        history.append(step)
        tell(step)
        if stop():
            raise KeyboardInterrupt

    return record


def _warnings(recipe: LoopMethod, plan: Plan, task: Task, adaptor: Adaptor) -> list[str]:
    """What is known to go wrong with these settings, each with its remedy; costs no query."""
    found = []
    steps = plan.epochs * -(-plan.images // recipe.batch)
    settings, papers = recipe.settings, soda.settings
    same_step = (
        recipe.step == soda.step and settings.get("sigma") == papers["sigma"]
    )  # which it grows with, squared
    if "lr" in settings and not recipe.learning_rates and same_step and steps < PAPER_STEPS / 2:
        found.append(
            f"the paper's learning rate belongs to {PAPER_STEPS:,} steps and this run makes {steps:,}: "
            "the adaptor may hardly move; try lr=auto (--set lr=auto)."
        )
    if told := drowned_probes(
        recipe.search, adaptor, task.images[slice(0, LOOKED_AT)], task.box, task.seed
    ):
        found.append(told)
    return found


def _reason(stopped: str, plan: Plan, recipe: Method, history: list[Step]) -> str:
    if stopped == "interrupted":
        return f"Stopped by request after {len(history):,} steps; the best adaptor so far is kept."
    if stopped == "budget" and isinstance(recipe, Method):
        return f"The budget of {plan.limit:,} queries reached for {len(history):,} steps."
    if stopped == "budget":
        done = len(history) / history[-1].of if history else 0
        return f"The budget of {plan.limit:,} queries reached for {done:.3g} of {recipe.epochs} epochs."
    return (
        f"All {plan.epochs} epochs are done."
        if plan.epochs
        else "Nothing to learn: the model's own answers."
    )
