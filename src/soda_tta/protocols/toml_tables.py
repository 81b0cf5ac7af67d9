"""Tables of a TOML file: every key is known and of its type, or the error names key and file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from soda_tta.errors import SodaError

T = TypeVar("T")
NOT_STATED: Any = object()
WORDS = {str: "a text", int: "a whole number", dict: "a table", list: "a list"}


class TomlTable:
    """One table of a file.

    Parameters
    ----------
    file : str
        The file, for errors.
    values : mapping
        The keys and values.
    known : collection of str
        The keys that the table may have; another one is an error.
    name : str, default the top of the file
        As it stands between brackets.
    error : type, default SodaError
        The class of errors.

    Examples
    --------
    >>> TomlTable("a.toml", {"ulr": ""}, ["url"])
    Traceback (most recent call last):
    ...
    soda_tta.errors.SodaError: a.toml: 'ulr' is not a key; did you mean 'url'? The keys are: url.
    """

    def __init__(
        self,
        file: str,
        values: Mapping[str, Any],
        known: Collection[str],
        name: str = "",
        error: type[SodaError] = SodaError,
    ) -> None:
        self.file = file
        self.values = values
        self.name = name
        self.error = error
        for key in values:
            if key not in known:
                near = get_close_matches(key, known, 1)
                hint = f"; did you mean {near[0]!r}? The" if near else "; the"
                raise error(
                    f"{file}: {key!r} is not a key{self.where}{hint} keys{self.where} are: "
                    f"{', '.join(known)}."
                )

    @property
    def where(self) -> str:
        """The name of the table, for errors."""
        return f" of [{self.name}]" if self.name else ""

    def refuse(self, key: str, problem: str) -> SodaError:
        """The error of a key whose value is not valid."""
        return self.error(f"{self.file}: {key}{self.where} {problem}")

    def get(self, key: str, kind: type[T], default: Any = NOT_STATED) -> T:
        """The value of a key, which must be of this type; without a default it is required."""
        if key not in self.values:
            if default is NOT_STATED:
                raise self.refuse(key, f"is missing; it is {WORDS[kind]}.")
            return default  # type: ignore[no-any-return]
        value = self.values[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.refuse(key, f"is {value!r}; it must be {WORDS[kind]}.")
        return value

    def choice(self, key: str, choices: Collection[str], default: Any = NOT_STATED) -> str:
        """A text that is one of these."""
        value = self.get(key, str, default)
        if value not in choices:
            raise self.refuse(key, f"is {value!r}; choose from: {', '.join(choices)}.")
        return value

    def at_least_one(self, key: str, default: Any = NOT_STATED) -> int:
        """A whole number of at least 1."""
        value = self.get(key, int, default)
        if value is not None and value < 1:
            raise self.refuse(key, f"is {value}; it must be at least 1.")
        return value

    def read(self, key: str, read: Callable[[str], T], default: Any = NOT_STATED) -> T:
        """A text that a function reads; its ValueError becomes the error."""
        if key not in self.values and default is not NOT_STATED:
            return default  # type: ignore[no-any-return]
        try:
            return read(self.get(key, str))
        except ValueError as error:
            raise self.refuse(key, f"is not valid: {error}.") from error

    def texts(self, key: str) -> dict[str, str]:
        """A table of texts, such as headers."""
        table = self.get(key, dict, {})
        for name, value in table.items():
            if not isinstance(value, str):
                raise self.refuse(f"{key}.{name}", f"is {value!r}; it must be a text.")
        return dict(table)


def read_toml(path: Path, error: type[SodaError] = SodaError) -> dict[str, Any]:
    """The content of a TOML file."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise error(f"{path} cannot be read: {problem.strerror or problem}.") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise error(f"{path} is not a TOML file: {problem}.") from problem
