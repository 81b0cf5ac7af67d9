"""A live stream on disk: one safetensors file. Nothing in it is executed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from soda_tta._version import __version__
from soda_tta.engine.live_source import Source
from soda_tta.errors import RunError
from soda_tta.storage.checkpoint import keys_of, read_arrays, write_arrays
from soda_tta.storage.named_arrays import Arrays, below, part_of
from soda_tta.storage.stream_file import KEY, LIVE_KEY, check_same_model

if TYPE_CHECKING:
    from soda_tta.engine.live_events import Listener

FORMAT = 3  # 2: the bank has repairs and a learned part; 3: images have 8 bits


def write_live_file(path: Path, stream: Any) -> None:
    """Write a stream, atomically."""
    arrays: Arrays = {}
    learner = stream.learner
    for place, source in enumerate(learner.sources.values()):
        arrays |= below(f"source.{place}.", source.state())
    life = learner.life
    facts = {
        "format": FORMAT,
        "soda_tta": __version__,
        "method": stream.method.name,
        "settings": stream.settings,
        "learn_budget": life.learn_budget,
        "buffer": learner.buffer,
        "level": life.level,
        "seed": learner.seed,
        "most_sources": learner.most,
        "box": life.meter.box.card(),
        "keys": list(learner.sources),
        "appeared": learner.appeared,
        "allowance": life.allowance,
        "arrived": life.arrived,
        "candidates": life.candidates,
        "queries": stream.ledger.queries,
    }
    write_arrays(path, arrays, facts, LIVE_KEY)


def read_live_file(
    path: Path,
    box: Any,
    kind: Any,
    directory: str | Path | None,
    listener: Listener | None,
) -> Any:
    """The stream of a file, in front of the same model."""
    if not path.is_file():
        raise RunError(f"{path} does not exist; give a file written by LiveStream.save.")
    if KEY in keys_of(path):
        raise RunError(f"{path} is not a stream of soda-e: leave out method=, or name its method.")
    arrays, facts = read_arrays(path, LIVE_KEY, f"{path} is not a saved live stream")
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise RunError(
            f"{path} was written by another version of this package; read it with that version."
        )
    check_same_model(path, facts["box"], box.card())
    try:
        stream = kind(
            box,
            learn_budget=facts["learn_budget"],
            buffer=facts["buffer"],
            level=facts["level"],
            seed=facts["seed"],
            sources=facts["most_sources"],
            method=facts["method"],
            directory=directory,
            listener=listener,
            **facts["settings"],
        )
        learner = stream.learner
        for place, key in enumerate(facts["keys"]):
            state = part_of(arrays, f"source.{place}.")
            learner.sources[key] = Source.restored(state, stream.method)
        learner.appeared = int(facts["appeared"])
        learner.life.allowance = float(facts["allowance"])
        learner.life.arrived = int(facts["arrived"])
        learner.life.candidates = int(facts["candidates"])
        for purpose, count in facts["queries"].items():
            stream.meter.recover(int(count), purpose)
        stream.publish()
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise RunError(f"{path} holds a stream that cannot be continued: {error}") from error
    return stream
