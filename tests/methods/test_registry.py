"""Methods are found by their name or by the place of the user's own code."""

import sys

import pytest

from soda_tta.errors import MethodError
from soda_tta.methods import all_methods, find_method


def test_an_unknown_method_is_refused_with_the_list_of_all_methods() -> None:
    with pytest.raises(MethodError, match="deployed, soda-e, soda, soda-auto"):
        find_method("sodda")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nowhere:mine", "nowhere"),
        ("math:mine", "mine"),
        ("math:pi", "is a float"),
        (":", "file.py:name"),
    ],
)
def test_a_place_without_a_method_is_refused(place: str, message: str) -> None:
    with pytest.raises(MethodError, match=message):
        find_method(place)


def test_a_method_is_found_by_module_and_name() -> None:
    assert find_method("soda_tta.methods.soda:soda") is all_methods()["soda"]


def test_a_method_is_returned_as_it_is_and_anything_else_is_refused() -> None:
    soda = all_methods()["soda"]
    assert find_method(soda) is soda
    with pytest.raises(MethodError, match="is not a method"):
        find_method(3)


def test_looking_up_a_built_in_method_leaves_the_import_path_alone(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    find_method("soda")
    assert sys.path == before
