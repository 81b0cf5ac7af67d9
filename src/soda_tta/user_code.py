"""Load a function or a method from the user's own Python code.

The user names it as `package.module:name` or `path/to/file.py:name`.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from soda_tta.errors import SodaError

Kind = Literal["function", "method"]

DIGEST_LENGTH = 12  # hexadecimal digits: enough to tell two versions of a file apart

# By resolved path and content: the same file gives the same classes and functions each time,
# and an edited file is imported again.
_file_modules: dict[tuple[Path, str], ModuleType] = {}
_imported: dict[str, ModuleType] = {}  # modules whose digest is known, by name
_digests: dict[str, str] = {}  # of the source as it was when it was loaded, by module or file


def load_object(
    reference: str, *, kind: Kind = "function", error_class: type[SodaError] = SodaError
) -> Any:
    """Import the object that `reference` names.

    A module is searched for in the current directory first, then among the installed packages.
    A file can import its neighbours, as it can under `python file.py`. Loading the same,
    unchanged file twice gives the same object.

    Parameters
    ----------
    reference : str
        `package.module:name` or `path/to/file.py:name`.
    kind : {"function", "method"}, default "function"
        What the object is, for error messages. A function must be callable.
    error_class : type of SodaError, default SodaError
        The exception to raise if the object cannot be loaded.

    Examples
    --------
    >>> load_object("math:hypot")(3, 4)
    5.0
    """
    place, _, name = reference.rpartition(":")
    if not place or not name:
        raise error_class(
            f"{reference!r} cannot be imported; write package.module:name or file.py:name."
        )
    if place.endswith(".py") and not Path(place).is_file():
        raise error_class(f"{place} does not exist; check the path of the file.")
    try:
        module = _import_file(place) if place.endswith(".py") else _import_module(place)
    except Exception as error:  # the user's code may raise anything
        raise error_class(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
    value = getattr(module, name, None)
    if value is None or (kind == "function" and not callable(value)):
        raise error_class(f"{place} has no {kind} {name!r}.")
    return value


def source_digest(reference: str) -> str:
    """A short digest of the file that holds the object; empty if there is no such file.

    It covers the whole file, because a function also depends on what it calls there. It is the
    digest of what was loaded, also if the file has been edited since; load the object first.

    Parameters
    ----------
    reference : str
        `package.module:name` or `path/to/file.py:name`, as passed to `load_object`.

    Examples
    --------
    >>> function = load_object("json.decoder:JSONDecoder")
    >>> len(source_digest("json.decoder:JSONDecoder"))
    12
    >>> source_digest("sys:exit")
    ''
    """
    return _digests.get(reference.rpartition(":")[0], "")


def _digest(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()[:DIGEST_LENGTH]


def _import_module(name: str) -> ModuleType:
    """Import a module by its name and note the digest of its source."""
    _make_importable(Path.cwd())
    module = importlib.import_module(name)
    if _imported.get(name) is not module:  # the first import, or one of an edited file
        _imported[name] = module
        file = getattr(module, "__file__", None)
        if file is not None:
            _digests[name] = _digest(Path(file).read_bytes())
    return module


def _import_file(place: str) -> ModuleType:
    """The module of a file, from the cache if this content was imported before."""
    file = Path(place).resolve()
    source = file.read_bytes()
    digest = _digest(source)
    if (file, digest) not in _file_modules:
        _file_modules[file, digest] = _execute(file, source)
    _digests[place] = digest
    return _file_modules[file, digest]


def _execute(file: Path, source: bytes) -> ModuleType:
    """Run a file as a module named after it, without replacing another module of that name.

    The source is compiled here, because Python's bytecode cache misses an edit that changes
    neither the second nor the size of a file.
    """
    name = file.stem
    module = ModuleType(name)
    module.__file__ = str(file)
    _make_importable(file.parent)
    previous = sys.modules.get(name)
    sys.modules[name] = module  # a dataclass looks its own module up there
    succeeded = False
    try:
        exec(compile(source, str(file), "exec"), vars(module))
        succeeded = True
    finally:
        edited = getattr(previous, "__file__", None) == str(file)
        if previous is None and not succeeded:
            sys.modules.pop(name, None)
        elif previous is not None and not (succeeded and edited):
            sys.modules[name] = previous
    return module


def _make_importable(folder: Path) -> None:
    """Put a folder on the import path, as `python file.py` does and a console script does not."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def load_own(place: str) -> Any:
    """Import an object of this package by its name, without touching `sys.path`.

    For modules of a higher floor, which a lower one may name but not import.

    >>> load_own("json.decoder:JSONDecoder").__name__
    'JSONDecoder'
    """
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
