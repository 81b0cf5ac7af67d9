"""The errors of this package. Each message says what happened and then names the remedy."""

from __future__ import annotations

from soda_tta.foreign_text import printable


class SodaError(Exception):
    """Base class of every error that this package raises on purpose.

    The command line prints its message on one line, without a traceback. A message may quote what
    a server or a file says: here control characters become escapes, and secrets are hidden.

    >>> print(SodaError("the server answered \\x1b[2J"))
    the server answered \\x1b[2J
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(message))


class BoxError(SodaError):
    """The deployed model cannot be queried, or its response cannot be used."""


class BoxUnavailable(BoxError):
    """The deployed model did not respond this time. A later attempt may succeed.

    Parameters
    ----------
    message : str
        What happened and what to do.
    retry_after : float, optional
        Seconds to wait before the next attempt, if the server declared them.
    sent : bool, default True
        Whether images may have reached the model. It may then have computed, and billed, them.

    Attributes
    ----------
    elsewhere : bool
        Another server of the same model can be asked at once.
    """

    def __init__(
        self, message: str, retry_after: float | None = None, *, sent: bool = True
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.sent = sent
        self.elsewhere = False


class BudgetError(SodaError):
    """The next query would exceed the budget. It was not sent."""


class ImageError(SodaError, ValueError):
    """An image, or a set of images, cannot be used as it is."""


class MethodError(SodaError, ValueError):
    """A method or one of its settings does not exist, or a setting has an invalid value."""


class RunError(SodaError):
    """A run directory or an adaptor file is missing, damaged or of another kind."""


class StorageError(RunError):
    """A file cannot be written now: no space, no permission, or another process holds the lock."""


class CorruptionError(SodaError, ValueError):
    """A corruption or severity does not exist, or cannot be applied to these images."""
