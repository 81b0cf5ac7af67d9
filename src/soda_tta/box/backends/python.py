"""A box from any Python callable."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from soda_tta.box.backends.backend import Backend
from soda_tta.box.input import Input
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.types import Array


class CallableBox(Backend):
    """Query a Python function: prepared images in, one row of numbers per image out.

    Parameters
    ----------
    function : callable
        Takes an array of prepared images and returns an array of shape (n, classes).
    input : Input, optional
        The images the function expects. Default: float32 NCHW RGB in [0, 1].
    logits : bool, default False
        The function returns logits instead of probabilities.
    batch : int, default 256
        Images per call of the function.
    timeout : float, optional
        Seconds to wait for a call. Default: no limit.
    source : str, default ""
        Digest of the file that holds the function, for the fingerprint.

    Examples
    --------
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
        self.function = function
        self.input = input or Input()
        self.logits = logits
        self.batch = batch
        self.timeout = timeout
        self.source = source

    @classmethod
    def takes(cls, model: Any) -> bool:
        return callable(model)

    def answer(self, images: Array) -> Array:
        prepared = self.input.prepare(images)
        if self.timeout is None:
            return self._call(prepared)
        return call_with_timeout(lambda: self._call(prepared), self.timeout)

    def _call(self, prepared: Array) -> Array:
        try:
            return np.asarray(self.function(prepared))
        except (BoxError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise BoxError(f"the model raised {type(error).__name__}: {error}") from error

    def fingerprint(self) -> str:
        module = getattr(self.function, "__module__", "?")
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        digests = [digest for digest in (code_digest(self.function), self.source) if digest]
        return ":".join(["python", str(module), name, *digests])

    def __repr__(self) -> str:
        return f"CallableBox({getattr(self.function, '__qualname__', self.function)!s})"


def code_digest(function: Any) -> str:
    """A digest that tells two functions of one name apart.

    It covers the code, the names, the constants and the values the function closes over.
    An object that is not a plain function has no digest; its class stands for it.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    digest = hashlib.sha256()
    _add_code(code, digest)
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        if isinstance(value, np.ndarray):
            digest.update(value.tobytes())
        elif isinstance(value, int | float | str | bytes):
            digest.update(repr(value).encode())
    return digest.hexdigest()[:12]


def _add_code(code: Any, digest: Any) -> None:
    """Add the code of a function, and of the functions inside it, to a digest."""
    digest.update(code.co_code + repr(code.co_names).encode())
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            _add_code(constant, digest)
        elif isinstance(constant, int | float | str | bytes):
            # other constants are left out: the order of a set varies from process to process
            digest.update(repr(constant).encode())


def call_with_timeout(call: Callable[[], Array], seconds: float) -> Array:
    """The result of a call, or `BoxUnavailable` after so many seconds.

    Python cannot kill a call that hangs: its thread stays behind.
    """
    results: list[Array | BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if not results:
        raise BoxUnavailable(
            f"the model did not respond within {seconds:g} s; check the model, "
            f"or allow more time, for example timeout={4 * seconds:g}."
        )
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]
