"""Open the servers of one model together: those that do not respond yet join later."""

from __future__ import annotations

import socket
import threading
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from queue import Empty, SimpleQueue
from urllib.parse import urlsplit

from soda_tta.box.box import Box
from soda_tta.box.replicas import Replica, Replicas
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.foreign_text import quoted
from soda_tta.protocols.open_inference import ModelMetadata, TensorMetadata

GRACE = 5.0  # seconds that the others have to respond once the first has


Open = Callable[[str, str | None], Box]  # from an address, and the IP address behind its name


def open_replicas(urls: Sequence[str], open: Open, *, dns: bool) -> Replicas:
    """The servers at these addresses, which must describe the same model.

    Parameters
    ----------
    urls : their addresses.
    open : opens one of them.
    dns : every IP address behind each name is a server of its own.
    """

    def found(known: Collection[str] = ()) -> list[Replica]:
        places = [(url, ip) for url in urls for ip in (resolved(url) if dns else [None])]
        replicas = [replica_at(url, ip, open) for url, ip in places]
        return [replica for replica in replicas if replica.name not in known]

    replicas = found()
    failures = open_all(replicas)
    opened = [replica for replica in replicas if replica.box is not None]
    if not opened:
        raise next(iter(failures.values()))
    first = opened[0]

    def difference(box: Box, name: str = "a server") -> str | None:
        assert first.box is not None
        return different(first.name, first.box, name, box)

    for replica in opened[1:]:
        assert replica.box is not None
        problem = difference(replica.box, replica.name)
        if problem is not None:
            raise BoxError(problem)
    if len(opened) < len(replicas):
        warnings.warn(left_out(replicas, failures), stacklevel=2)
    return Replicas(replicas, difference, found if dns else None)


def replica_at(url: str, ip: str | None, open: Open) -> Replica:
    """One server, not opened yet."""
    name = url if ip is None else f"{url} at {ip}"
    return Replica(name, lambda: open(url, ip))


def resolved(url: str) -> list[str]:
    """The IP addresses behind the name in an address."""
    parts = urlsplit(url)
    try:
        entries = socket.getaddrinfo(parts.hostname, parts.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise BoxUnavailable(f"{parts.hostname} cannot be resolved: {error}", sent=False) from error
    return sorted({str(entry[4][0]) for entry in entries})


def open_all(replicas: Sequence[Replica]) -> dict[str, BoxUnavailable]:
    """Open all at once; returns why some do not respond, by name.

    A server that takes long is not waited for: it is probed later, like one that fails.
    """
    outcomes: SimpleQueue[tuple[Replica, Box | BaseException]] = SimpleQueue()

    def open(replica: Replica) -> None:
        try:
            outcomes.put((replica, replica.open()))
        except BaseException as error:
            outcomes.put((replica, error))

    for replica in replicas:
        threading.Thread(target=open, args=(replica,), daemon=True).start()
    failures: dict[str, BoxUnavailable] = {}
    end: float | None = None
    for _ in replicas:
        try:
            seconds = None if end is None else max(0.0, end - time.monotonic())
            replica, outcome = outcomes.get(timeout=seconds)
        except Empty:
            break
        if isinstance(outcome, BoxUnavailable):
            failures[replica.name] = outcome
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            replica.box = outcome
            end = end or time.monotonic() + GRACE
    return failures


def left_out(replicas: Sequence[Replica], failures: dict[str, BoxUnavailable]) -> str:
    """Which servers do not respond, for a person."""
    silent = [replica.name for replica in replicas if replica.box is None]
    reason = next(iter(failures.values()), None) or f"{silent[0]} takes long to respond."
    return (
        f"{len(silent)} of {len(replicas)} servers of the model cannot be used now: {reason} "
        "The others are used; these join when they respond."
    )


def different(name: str, box: Box, other_name: str, other: Box) -> str | None:
    """What two servers declare differently; None if they describe the same model."""
    one = described(box)
    two = described(other)
    for fact, value in one.items():
        if two[fact] != value:
            return (
                f"{other_name} has the {fact} {quoted(two[fact]) or '(none)'}, and {name} "
                f"{quoted(value) or '(none)'}; all addresses must serve the same model."
            )
    return None


def described(box: Box) -> dict[str, str]:
    """What the server declared about its model, as texts."""
    metadata: ModelMetadata = box.metadata  # type: ignore[attr-defined]
    return {
        "name": metadata.name,
        "versions": ", ".join(metadata.versions),
        "platform": metadata.platform,
        "input": tensors(metadata.inputs),
        "output": tensors(metadata.outputs),
    }


def tensors(entries: tuple[TensorMetadata, ...]) -> str:
    """Names, types and shapes."""
    return ", ".join(f"{each.name} {each.datatype} {list(each.shape)}" for each in entries)
