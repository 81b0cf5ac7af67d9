"""From what the user specified to a proxy that adapts: the model's facts, and the adaptor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soda_tta.adaptors import Adaptor, Identity
from soda_tta.box.box import Box
from soda_tta.engine.apply import deployed_model
from soda_tta.engine.events import Notice
from soda_tta.engine.live import STATE, LiveStream
from soda_tta.engine.saved import SavedAdaptor, load_adaptor
from soda_tta.engine.stream import Stream
from soda_tta.errors import BoxError, BoxUnavailable, SodaError
from soda_tta.serve.answers import Answers
from soda_tta.serve.live import FixedAdaptor, LiveAdaptor, StrictStream
from soda_tta.serve.pixels import Pixels, innermost
from soda_tta.serve.proxy import Proxy
from soda_tta.serve.state import STREAM

NOT_LEARNING = "an adaptor that was specified stays as it is, as with --freeze"
AGAIN_AFTER = 2.0  # seconds until a model that did not respond is asked again
FOLLOW, STRICT = "follow", "strict"
MODES = (FOLLOW, STRICT)
# The learner asks for few images at a time, and never for two such requests at once: those of
# clients, which the model computes between them, wait little.
GENTLE = {"batch": 16, "workers": 1}


@dataclass(frozen=True, kw_only=True)
class Model:
    """Which model, what it expects, and what is done to its images.

    Parameters
    ----------
    model : str
        Whatever `load_box` takes.
    facts : dict
        Options of `load_box`.
    adaptor : str, optional
        A run folder or an adaptor file to begin with.
    mode : {"follow", "strict"}
        Learn behind the traffic, or before each answer (SODA-O).
    freeze : bool
        Never learn.
    learn_budget : float
        The most queries of the learner per image that arrives. A saved state keeps its own.
    settings : dict
        Of `LiveStream`: prior, views. A saved state keeps its own.
    """

    model: str
    facts: dict[str, Any] = field(default_factory=dict)
    adaptor: str | None = None
    mode: str = FOLLOW
    freeze: bool = False
    learn_budget: float = 2
    settings: dict[str, Any] = field(default_factory=dict)

    def saved(self) -> SavedAdaptor | None:
        """The adaptor to begin with."""
        return None if self.adaptor is None else load_adaptor(self.adaptor)

    def box(self, saved: SavedAdaptor | None, tell: Callable[[str], Any]) -> Box:
        """The model, with the facts of the adaptor's run where nothing else is specified."""

        def listen(event: Any) -> None:
            if isinstance(event, Notice):
                tell(event.text)

        known = saved or SavedAdaptor(Identity())
        return deployed_model(known, self.model, self.options, listen)

    @property
    def options(self) -> dict[str, Any]:
        """Those of `load_box`."""
        options = dict(self.facts)
        if self.mode == FOLLOW and not self.freeze and "://" in self.model:
            for name, value in GENTLE.items():
                if options.get(name) is None:
                    options[name] = value
        return options

    def live(self, box: Box, saved: SavedAdaptor | None, folder: Path | None) -> LiveAdaptor:
        """What changes the images."""
        first: Adaptor | None = None if saved is None else saved.adaptor
        if self.settings and (self.freeze or first is not None or self.mode != FOLLOW):
            raise SodaError(
                "prior= and views= are for a proxy that learns behind the traffic; an adaptor has "
                "those of its run, and --mode strict has none."
            )
        if self.freeze:
            return FixedAdaptor(first)
        if self.mode == FOLLOW:
            return following(box, first, folder, self.learn_budget, self.settings)
        if first is not None:
            raise SodaError("--mode strict learns its own adaptor; leave --adaptor out.")
        path = None if folder is None else folder / STREAM
        if path is not None and path.is_file():
            return StrictStream(Stream.load(path, box), path)
        return StrictStream(Stream(box), path)


def following(
    box: Box,
    first: Adaptor | None,
    folder: Path | None,
    learn_budget: float,
    settings: dict[str, Any],
) -> LiveAdaptor:
    """What learns behind the traffic; an adaptor that was learned before stays as it is."""
    if first is not None:
        return FixedAdaptor(first)
    path = None if folder is None else folder / STATE
    if path is not None and path.is_file():
        return LiveStream.load(path, box, directory=folder)
    return LiveStream(box, directory=folder, learn_budget=learn_budget, **settings)


def begin(proxy: Proxy, model: Model, folder: Path | None, box: Box | None = None) -> None:
    """Read what the model declares, and adapt its images from now on.

    Raises `BoxUnavailable` if the model does not respond.
    """
    saved = model.saved()
    if box is None:
        box = model.box(saved, lambda text: proxy.log.info("notice", text=text))
    inside = innermost(box)
    names = [getattr(inside, name, None) for name in ("input_name", "output_name")]
    if not all(isinstance(name, str) for name in names):
        raise BoxError(f"{inside!r} has no named tensors; serve an ONNX or TFLite file.")

    def fresh() -> LiveAdaptor:
        saves = [] if folder is None else [folder / STATE, folder / STREAM]
        for path in saves:
            path.unlink(missing_ok=True)
        return heard(model.live(box, saved, folder), proxy)

    live = heard(model.live(box, saved, folder), proxy)
    if isinstance(live, FixedAdaptor) and not model.freeze:
        proxy.log.info("notice", text=NOT_LEARNING)
    proxy.begin(
        Pixels(str(names[0]), box.input),
        live,
        Answers(box, str(names[1])),
        saves=folder is not None,
        fresh=None if isinstance(live, FixedAdaptor) else fresh,
    )
    proxy.audit.write("adapting", by=type(live).__name__)
    proxy.log.info("adapting", input=names[0], by=type(live).__name__)


def heard(live: LiveAdaptor, proxy: Proxy) -> LiveAdaptor:
    """The same; the dashboard shows what it decides."""
    if isinstance(live, LiveStream):
        live.listener = lambda event: proxy.audit.show(event.facts())
    return live


def begin_when_ready(proxy: Proxy, model: Model, folder: Path | None) -> None:
    """The same now, or as soon as the model responds; until then images pass unchanged.

    A model that responds and cannot be adapted ends this: asking it again changes nothing. Before
    that the error is raised; after it the proxy goes on serving, and the log names the remedy.
    """
    try:
        begin(proxy, model, folder)
        return
    except BoxUnavailable as error:
        proxy.log.warning("the model does not respond yet; images pass unchanged", error=error)

    def retry() -> None:
        while not proxy.ended.wait(AGAIN_AFTER):
            try:
                begin(proxy, model, folder)
                return
            except BoxUnavailable as error:
                proxy.log.warning("the model does not respond yet", error=error)
            except Exception as error:
                proxy.metrics.error("adaptor")
                proxy.log.warning("images pass unchanged until the next start", error=error)
                return

    threading.Thread(target=retry, name="begin", daemon=True).start()
