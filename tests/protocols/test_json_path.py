"""Paths into JSON: what they find, and what they put into a template."""

import pytest

from soda_tta.protocols.json_path import JsonPath

ANSWER = {"id": 7, "predictions": [{"tag": "a", "p": [0.25, 0.75]}, {"tag": "b", "p": [1, 0]}]}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("id", 7),
        ("$.id", 7),
        ("$", ANSWER),
        ("predictions[*].tag", ["a", "b"]),
        ("predictions[1].p", [1, 0]),
        ("predictions[0].p[1]", 0.75),
        ("predictions[*].p[*]", [[0.25, 0.75], [1, 0]]),
    ],
)
def test_a_path_finds(path: str, found: object) -> None:
    assert JsonPath.parse(path).find(ANSWER) == found


def test_a_path_begins_with_a_list_or_a_name_with_spaces() -> None:
    assert JsonPath.parse("[*].label").find([{"label": "a"}]) == ["a"]
    assert JsonPath.parse("top class.name").find({"top class": {"name": "a"}}) == "a"


@pytest.mark.parametrize("text", ["", " ", "a..b", "a[", "a[-1]", "a[x]", "a]", ".", "a[*]b", "a."])
def test_what_is_not_a_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        JsonPath.parse(text)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("labels", r"no 'labels' at the top \(the names there: id, predictions\)"),
        ("predictions.tag", "in predictions is a list, not an object with 'tag'"),
        ("predictions[2].tag", r"in predictions is a list of 2, without an item \[2\]"),
        ("id[*]", "in id is a number, not a list"),
        ("predictions[*].name", r"no 'name' in predictions\[0\]"),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ended(path: str, message: str) -> None:
    with pytest.raises(LookupError, match=message):
        JsonPath.parse(path).find(ANSWER)


@pytest.mark.parametrize(
    ("path", "template", "values", "body"),
    [
        ("image", {}, ["A"], {"image": "A"}),
        ("input.image", {"input": {"k": 3}}, ["A"], {"input": {"k": 3, "image": "A"}}),
        ("[0].b64", None, ["A"], [{"b64": "A"}]),
        ("rows[1]", {"rows": ["x"]}, ["A"], {"rows": ["x", "A"]}),
        ("i[*].b", {"i": [{"k": 1}]}, ["A", "B"], {"i": [{"k": 1, "b": "A"}, {"k": 1, "b": "B"}]}),
    ],
)
def test_values_are_put_into_a_template(
    path: str, template: object, values: list[str], body: object
) -> None:
    assert JsonPath.parse(path).placed(template, values) == body


@pytest.mark.parametrize(("path", "template"), [("a.b", {"a": "text"}), ("a[0]", {"a": {}})])
def test_a_template_that_does_not_fit_is_refused(path: str, template: object) -> None:
    with pytest.raises(ValueError, match="the template has"):
        JsonPath.parse(path).placed(template, ["A"])
