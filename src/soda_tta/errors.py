"""What can go wrong, each as one sentence that names the remedy."""

from __future__ import annotations


class SodaError(Exception):
    """Anything this package raises on purpose; the command prints it as one line."""


class BoxError(SodaError):
    """The deployed model could not be asked, or its answer cannot be used."""


class BoxUnavailable(BoxError):
    """The deployed model did not answer this time; asking again later may help."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BudgetError(SodaError):
    """The next query would cost more than is left; it was not asked."""


class ImageError(SodaError, ValueError):
    """An image, or a set of images, that cannot be used as it is."""


class MethodError(SodaError, ValueError):
    """A method or a number of a method that does not exist or makes no sense."""


class RunError(SodaError):
    """A run directory or an adaptor file that is not what was expected."""


class StorageError(RunError):
    """Nothing can be written there at present: no room, no right, or another process is at work."""


class CorruptionError(SodaError, ValueError):
    """A corruption, a severity or images that cannot be corrupted as asked."""
