"""Text from outside is shown, never obeyed; secrets are not shown at all."""

import pickle
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta import masking
from soda_tta.engine.events import Notice
from soda_tta.errors import BoxUnavailable, SodaError
from soda_tta.foreign_json import DEEPEST, parse_json
from soda_tta.foreign_text import CONTROL, LONGEST, printable, quoted
from soda_tta.masking import keep_secret, masked


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_keys", set())


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters()))
def test_no_text_keeps_a_control_character(text: str) -> None:
    shown = printable(text)
    assert not CONTROL.search(shown)
    assert all(each.isprintable() or each in "\n\t" or ord(each) > 0x7F for each in shown)
    assert "\n" not in quoted(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\x9b31m", r"\x9b31m"),  # the one-byte form of an escape sequence
        ("a\rb", r"a\x0db"),
        ("ab\u202egnp.exe", r"ab\u202egnp.exe"),
        ("\udcff.png", r"\udcff.png"),
        ("two\nlines\tof Größe 日本", "two\nlines\tof Größe 日本"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_errors_and_notices_are_cleaned_wherever_they_are_made() -> None:
    error = BoxUnavailable("the server says \x1b]0;title\x07", retry_after=2.0)
    assert str(error) == r"the server says \x1b]0;title\x07" and error.retry_after == 2.0
    assert str(pickle.loads(pickle.dumps(SodaError("\x1b")))) == r"\x1b"
    assert Notice("\x1b[2J").text == r"\x1b[2J"


def test_a_long_message_keeps_its_remedy() -> None:
    text = str(SodaError(f"{'x' * 10**6} is not a name; choose another."))
    assert len(text) < LONGEST + 10 and text.endswith("is not a name; choose another.")
    assert len(quoted("y" * 10**6)) < 310


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pw@host/v2", "https://...@host/v2"),
        ("https://me:p@w@host/v2", "https://...@host/v2"),
        ("--model='https://host/m?key=1&b=2' --out run", "--model='https://host/m?...' --out run"),
        ("see https://host/page#part.", "see https://host/page#part."),
        ("mail me@host: is it 3?", "mail me@host: is it 3?"),
    ],
)
def test_addresses_lose_their_credentials(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_a_key_is_hidden_in_every_message_also_percent_encoded() -> None:
    keep_secret("ab/c+d==")
    text = str(SodaError("Bearer ab/c+d== and key=ab%2Fc%2Bd%3D%3D"))
    assert text == "Bearer ... and key=..."


def test_a_key_that_could_be_any_word_hides_nothing() -> None:
    keep_secret("a")
    assert masked("a cat") == "a cat"


@pytest.mark.parametrize("text", ["[" * 10**5, b'{"a":' * 10**5, "[" * 99 + "]" * 99, "", b"\xff"])
def test_json_that_cannot_be_used_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=re.compile("")):
        parse_json(text)


def test_json_of_ordinary_depth_is_read() -> None:
    text = "[" * DEEPEST + "]" * DEEPEST
    assert parse_json(text) is not None and parse_json('{"a": [1, {"b": null}]}')
