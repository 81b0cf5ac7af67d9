"""Text from outside, made safe to show: from a server, a file name, a model or a run folder.

A terminal obeys escape sequences, and bidirectional controls show a text in another order than a
shell reads it. Such characters are shown as escapes, so that they can still be recognised.
"""

from __future__ import annotations

import re

from soda_tta.masking import masked

LONGEST = 4000  # characters of a whole message
LONGEST_QUOTE = 300  # characters of a text that is quoted inside a message

CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # all except tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, overrides and isolates
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff"  # bytes of a file name that are not UTF-8
)
CONTROL = re.compile(f"[{CONTROLS}]")


def printable(text: object, longest: int = LONGEST) -> str:
    """The text with control characters as escapes, without secrets, and not too long.

    The beginning and the end of a long text are kept: the remedy of an error stands at its end.

    >>> print(printable("\\x1b[2Jcleared"))
    \\x1b[2Jcleared
    """
    plain = escaped(masked(str(text)))
    if len(plain) <= longest:
        return plain
    half = longest // 2
    return f"{plain[:half]} ... {plain[-half:]}"


def quoted(text: object, longest: int = LONGEST_QUOTE) -> str:
    """A text to quote inside a message: as `printable`, on one line and short.

    >>> quoted("no\\nsuch\\tmodel")
    'no such model'
    """
    plain = printable(" ".join(str(text).split()), 10 * longest)
    return plain if len(plain) <= longest else f"{plain[:longest]} ..."


def escaped(text: str) -> str:
    """The text with control characters as escapes."""
    return CONTROL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
