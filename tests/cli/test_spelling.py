"""Commands print flags where the library names Python arguments."""

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import soda_tta
from soda_tta.cli import build_parser
from soda_tta.cli.model_options import MODEL_FLAGS
from soda_tta.cli.spelling import FLAGS, PHRASES, SETTINGS, as_flags

from .conftest import ADAPT, Soda

SOURCE = Path(soda_tta.__file__).parent
ARGUMENT = re.compile(r"(?<![\w-])(?<!--set )[a-z]\w*=")
# Texts that are not printed by commands: the repr of objects, and options of other tools.
# of the wire, and of representations
NOT_PRINTED = (
    *("Stream(", "Quantised(", "lr=auto chooses from"),
    *("form-data", "filename=", "SignedHeaders="),
)
EXAMPLES = {
    "continue it with resume=True, or choose another out=.": (
        "continue it with --resume, or choose another --out."
    ),
    "pass size=224, for example, to resize them all.": (
        "pass --size 224, for example, to resize them all."
    ),
    "size= resizes files only": "--size resizes files only",
    "if these are logits, pass logits=True": "if these are logits, pass --logits",
    "for example timeout=1e+03).": "for example --timeout 1e+03).",
    "pass the key by api_key_env='VARIABLE'.": "pass the key by --api-key-env VARIABLE.",
    "(certificate_authority='FILE').": "(--ca FILE).",
    "(output='NAME').": "(--output NAME).",
    'Pass clean images (clean="DIR"), or look': "Pass clean images (--clean DIR), or look",
    'one per line: classes="names.txt".': "one per line: --classes names.txt.",
    'may hardly move; try lr="auto".': "may hardly move; try --set lr=auto.",
    "or give one (lr=0.01).": "or give one (--set lr=0.01).",
    "raise mu (mu=1e-05)": "raise mu (--set mu=1e-05)",
    "no mu helps; use method='soda-e'": "no mu helps; use --method soda-e",
    "use search=multi-point or per-image.": "use --set search=multi-point or per-image.",
    "leave them out with diagonal=True.": "leave them out with --set diagonal=true.",
    "tau=2 and rho=-0.5 must lie": "--set tau=2 and --set rho=-0.5 must lie",
    "seed=-1 is negative. Use 0": "--seed -1 is negative. Use 0",
    "move it, or use force=True.": "move it, or use --force.",
    "send one image per request (batch=1).": "send one image per request (--request-size 1).",
    "add one or pass frost=None.": "add one or leave out --frost.",
    "choose one of a, b, or give module=.": "choose one of a, b.",
    "stores; pass layout='folder'.": "stores; pass --layout folder.",
}


@pytest.mark.parametrize(("text", "expected"), EXAMPLES.items())
def test_an_argument_becomes_a_flag(text: str, expected: str) -> None:
    assert as_flags(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "continue with: soda-tta adapt --set lr=0.1 --set=mu=0.2 --out=run --resume",
        "soda-tta adapt --set 'without=a b'",
        "data/size=3/out=4.png does not exist",
        "the model raised ValueError: x=3",
        "http://host/v2?method=soda",
    ],
)
def test_commands_paths_and_unknown_names_stay(text: str) -> None:
    assert as_flags(text) == text


def texts(tree: ast.AST) -> Iterator[str]:
    """Every string of a module except docstrings; 7 in place of the values in f-strings."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
            parts = [part.value if isinstance(part, ast.Constant) else "7" for part in node.values]
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and id(node) not in skipped:
            yield str(node.value)


def library_texts() -> list[str]:
    """Sentences of the library that name a Python argument."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.is_relative_to(SOURCE / "cli"):
            continue
        for text in texts(ast.parse(path.read_text(encoding="utf-8"))):
            is_sentence = " " in text and "<" not in text
            if is_sentence and ARGUMENT.search(text) and not any(no in text for no in NOT_PRINTED):
                found.append(text)
    return found


def test_no_sentence_of_the_library_keeps_a_python_argument() -> None:
    sentences = library_texts()
    assert len(sentences) > 40
    kept = [text for text in sentences if ARGUMENT.search(as_flags(text))]
    assert kept == []


def test_every_flag_is_an_option_of_some_command() -> None:
    def options(parser: Any) -> Iterator[str]:
        for action in parser._actions:
            yield from action.option_strings
            if hasattr(action, "choices") and isinstance(action.choices, dict):
                for child in action.choices.values():
                    yield from options(child)

    existing = set(options(build_parser()))
    named = set(FLAGS.values()) | set(MODEL_FLAGS.values())
    for text in PHRASES.values():
        named |= set(re.findall(r"--[a-z-]+", text))
    assert named <= existing


def test_every_setting_of_every_method_is_translated() -> None:
    from soda_tta.methods import all_methods
    from soda_tta.settings import ALIASES

    names = {name for method in all_methods().values() for name in method.settings}
    from_python_only = {"module"}
    assert names | set(ALIASES) <= set(SETTINGS) | set(FLAGS) | from_python_only


def test_errors_warnings_and_notices_are_printed_with_flags(
    soda: Soda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warn_and_fail(*_: Any) -> Any:
        warnings.warn("try size=8.", stacklevel=1)
        raise soda_tta.SodaError("choose another out=.")

    done = soda(*ADAPT, "--method", "soda", "--set", "epochs=1", "--set", "width=4", "--out", "r")
    assert "try --set lr=auto" in done.err
    monkeypatch.setattr("soda_tta.cli.adapt.images_from", warn_and_fail)
    done = soda(*ADAPT, "--out", "other")
    assert done.err == "soda-tta: try --size 8.\nsoda-tta: choose another --out.\n"
