"""`${VARIABLES}` of the environment inside a text; their values are secrets."""

from __future__ import annotations

import os
import re

from soda_tta.errors import BoxError
from soda_tta.masking import keep_secret

VARIABLE = re.compile(r"\$\{(\w+)\}")


def fill_in(text: str, place: str) -> str:
    """The text with the values of its variables, which no message will show.

    Parameters
    ----------
    text : such as "Bearer ${HF_TOKEN}".
    place : where it stands, for the error if a variable is not set.
    """
    return VARIABLE.sub(lambda match: secret_of(match[1], place), text)


def secret_of(variable: str, place: str) -> str:
    """The value of an environment variable, kept secret; BoxError if an HTTP header cannot hold it.

    Parameters
    ----------
    variable : its name.
    place : where it is needed, for errors.
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        raise BoxError(
            f"{place}: the environment variable {variable} is not set; put the key there."
        )
    if not (value.isascii() and value.isprintable()):
        raise BoxError(
            f"{place}: the environment variable {variable} contains characters that an HTTP "
            "header cannot carry; check the key."
        )
    keep_secret(value)  # a server may echo it
    return value
