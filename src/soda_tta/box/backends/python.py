"""A box from any Python callable."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from soda_tta.box.box import Box
from soda_tta.box.facts import Input
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.types import Array


class CallableBox(Box):
    """Ask a Python function: prepared images in, one row of numbers an image out.

    >>> box = CallableBox(lambda images: np.full((len(images), 4), 0.25))
    >>> box(np.zeros((2, 3, 8, 8), np.float32)).shape
    (2, 4)
    """

    def __init__(
        self,
        function: Callable[[Array], Any],
        *,
        input: Input | None = None,
        logits: bool = False,
        batch: int = 256,
        timeout: float | None = None,
        source: str = "",
    ) -> None:
        self.source = source  # a digest of the file it comes from, where that is known
        self.function, self.input, self.logits, self.batch, self.timeout = (
            function,
            input or Input(),
            logits,
            batch,
            timeout,
        )

    def answer(self, images: Array) -> Array:
        prepared = self.input.prepare(images)
        if self.timeout is None:
            return self._ask(prepared)
        return within(self.timeout, lambda: self._ask(prepared))

    def _ask(self, prepared: Array) -> Array:
        try:
            return np.asarray(self.function(prepared))
        except (BoxError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise BoxError(f"the model raised {type(error).__name__}: {error}") from error

    def fingerprint(self) -> str:
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return f"python:{getattr(self.function, '__module__', '?')}:{name}{code_digest(self.function)}{self.source}"

    def __repr__(self) -> str:
        return f"CallableBox({getattr(self.function, '__qualname__', self.function)!s})"


def code_digest(function: Any) -> str:
    """What tells two functions of one name apart: code, names, constants and the numbers they close over.

    An object that is no plain function is known by its class alone.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    digest = hashlib.sha256()
    _digest_code(code, digest)
    for cell in function.__closure__ or ():
        held = cell.cell_contents
        if isinstance(held, np.ndarray):
            digest.update(held.tobytes())
        elif isinstance(held, int | float | str | bytes):
            digest.update(repr(held).encode())
    return ":" + digest.hexdigest()[:12]


def _digest_code(code: Any, digest: Any) -> None:
    digest.update(code.co_code + repr(code.co_names).encode())
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            _digest_code(constant, digest)
        elif isinstance(
            constant, int | float | str | bytes
        ):  # a set's order would vary from process to process
            digest.update(repr(constant).encode())


def within(seconds: float, ask: Callable[[], Array]) -> Array:
    """Wait for an answer, but not for ever. A hanging call cannot be killed: its thread is left behind."""
    results: list[Array | BaseException] = []

    def work() -> None:
        try:
            results.append(ask())
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if not results:
        raise BoxUnavailable(
            f"the model did not answer within {seconds:g} s; raise the timeout (--timeout) or look at it."
        )
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]
