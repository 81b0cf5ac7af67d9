"""Limits of the proxy, which can change while it runs: the table [limits] of its TOML file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from soda_tta.errors import SodaError
from soda_tta.protocols.toml_tables import TomlTable, read_toml

MEGABYTE = 2**20
TABLE = "limits"


def limit(default: float, meaning: str) -> Any:
    """A field of `Limits` with the text that explains it."""
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much the proxy takes on.

    Examples
    --------
    >>> Limits(queue=8).queue
    8
    """

    concurrency: int = limit(64, "requests that are adapted and computed at once")
    queue: int = limit(256, "requests that wait for that; one more gets 503")
    connections: int = limit(1024, "connections of clients; one more is closed")
    body_bytes: int = limit(64 * MEGABYTE, "bytes of a request; more gets 413")
    memory_bytes: int = limit(512 * MEGABYTE, "bytes of all requests together; more gets 503")
    json_bytes: int = limit(16 * MEGABYTE, "bytes of a JSON request that is adapted")
    response_bytes: int = limit(256 * MEGABYTE, "bytes of a response of the model; more gets 502")
    body_seconds: float = limit(20.0, "seconds for a client to send its request; later gets 408")
    images: int = limit(256, "images of a request that are adapted; more pass unchanged")
    pixels: int = limit(4 * MEGABYTE, "pixels of an image that is adapted; larger pass unchanged")
    drain_seconds: float = limit(30.0, "seconds for open requests after SIGTERM")

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            kinds = (int,) if isinstance(each.default, int) else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds) or not value > 0:
                wanted = "a whole number above 0" if kinds == (int,) else "a number above 0"
                raise SodaError(f"the limit {each.name} is {value!r}; it must be {wanted}.")

    def card(self) -> dict[str, float]:
        """The same as plain JSON."""
        return asdict(self)


def read_limits(path: str | Path | None) -> Limits:
    """The limits in a TOML file; those that it does not state have their defaults.

    Parameters
    ----------
    path : str, Path or None
        None: the defaults.
    """
    if path is None:
        return Limits()
    file = str(path)
    top = TomlTable(file, read_toml(Path(path)), [TABLE])
    known = [each.name for each in fields(Limits)]
    stated = TomlTable(file, top.get(TABLE, dict, {}), known, TABLE).values
    try:
        return Limits(**stated)
    except SodaError as error:
        raise SodaError(f"{file}: {error}") from error
