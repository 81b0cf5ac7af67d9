"""Functions and methods are loaded from the user's own modules and files."""

import sys
from pathlib import Path

import pytest

from soda_tta.errors import BoxError, MethodError, SodaError
from soda_tta.user_code import load_object, source_digest


@pytest.fixture(autouse=True)
def import_state(monkeypatch) -> None:
    """Give back the import path and the modules after each test."""
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.setattr("sys.modules", dict(sys.modules))


def test_a_function_is_loaded_from_a_file_in_a_subfolder(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "my model.py").write_text("def f():\n    return 42\n")
    monkeypatch.chdir(tmp_path)
    assert load_object("sub/my model.py:f")() == 42


def test_a_module_is_found_in_the_current_directory(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "zz_here.py").write_text("def f():\n    return 42\n")
    monkeypatch.chdir(tmp_path)
    assert load_object("zz_here:f")() == 42


def test_a_file_may_have_dataclasses_and_neighbours(tmp_path: Path) -> None:
    json = sys.modules["json"]
    (tmp_path / "json.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "import zz_neighbour\n"
        "@dataclass\n"
        "class Own:\n"
        "    number: int = 1\n"
        "def f():\n"
        "    return zz_neighbour.value + Own().number\n"
    )
    (tmp_path / "zz_neighbour.py").write_text("value = 41\n")
    assert load_object(f"{tmp_path / 'json.py'}:f")() == 42
    assert sys.modules["json"] is json  # a file does not replace a module of its name


def test_the_same_file_gives_the_same_object(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "mine.py"
    path.write_text("class C:\n    pass\n")
    first = load_object(f"{path}:C")
    monkeypatch.chdir(tmp_path)
    assert load_object("mine.py:C") is first
    assert load_object(f"{path}:C") is first
    assert source_digest("mine.py:C") == source_digest(f"{path}:C") != ""


def test_an_edited_file_is_imported_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    digests = []
    for value in (1, 2, 1):  # the size and often the second of the file stay the same
        path.write_text(f"def f():\n    return {value}\n")
        assert load_object(f"{path}:f")() == value
        digests.append(source_digest(f"{path}:f"))
    assert digests[0] == digests[2] != digests[1]


def test_the_digest_is_that_of_the_source_that_was_loaded(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "zz_edited.py").write_text("def f(): ...\n")
    monkeypatch.chdir(tmp_path)
    for reference in ("zz_edited.py:f", "zz_edited:f"):
        load_object(reference)
    before = source_digest("zz_edited:f")
    assert before == source_digest("zz_edited.py:f") != ""
    (tmp_path / "zz_edited.py").write_text("def f(): return 1\n")
    assert source_digest("zz_edited:f") == before


def test_what_was_not_loaded_has_no_digest() -> None:
    assert source_digest("no_such_module:f") == ""


@pytest.mark.parametrize("error_class", [SodaError, BoxError, MethodError])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("import zzz", "ModuleNotFoundError: .*zzz"),
    ],
)
def test_a_file_that_cannot_be_run_gives_the_reason(
    text: str, reason: str, error_class: type[SodaError], tmp_path: Path
) -> None:
    path = tmp_path / "zz_broken.py"
    path.write_text(text)
    with pytest.raises(error_class, match=f"zz_broken.py cannot be imported: {reason}"):
        load_object(f"{path}:f", error_class=error_class)
    assert "zz_broken" not in sys.modules


REFUSED = {
    "a missing file": ("absent.py:f", "absent.py does not exist"),
    "a missing module": ("no_such_package.module:f", "no_such_package.module cannot be imported"),
    "a relative module": (".here:f", ".here cannot be imported"),
    "no module": (":f", "':f' cannot be imported; write package.module:name"),
    "no name": ("math:", "'math:' cannot be imported"),
    "no colon": ("math", "'math' cannot be imported"),
    "a missing function": ("math:no_such_function", "math has no function 'no_such_function'"),
    "a value that is not a function": ("math:pi", "math has no function 'pi'"),
}


@pytest.mark.parametrize(("reference", "message"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_reference_is_refused(reference: str, message: str) -> None:
    with pytest.raises(SodaError, match=message):
        load_object(reference)


def test_a_method_need_not_be_callable() -> None:
    assert 3 < load_object("math:pi", kind="method") < 4
    with pytest.raises(SodaError, match="math has no method 'absent'"):
        load_object("math:absent", kind="method")
