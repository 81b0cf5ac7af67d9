"""Small JSON paths, such as `predictions[*].tagName`: names, indices, and `[*]` for every item."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from soda_tta.foreign_text import quoted

GRAMMAR = "names, [0] and [*], as in predictions[*].label; $ alone is the whole"
STEP = re.compile(r"\.?(?P<name>[^.\[\]$\s][^.\[\]]*)|\[(?P<place>\d{1,3}|\*)\]")
EVERY = None  # the step [*]

Step = str | int | None


@dataclass(frozen=True)
class JsonPath:
    """A place, or with `[*]` several places, in a JSON document.

    Parameters
    ----------
    text : str
        As it was written.
    steps : tuple
        A name in an object, an index in a list, or None for every item of a list.

    Examples
    --------
    >>> path = JsonPath.parse("predictions[*].label")
    >>> path.find({"predictions": [{"label": "cat"}, {"label": "dog"}]})
    ['cat', 'dog']
    """

    text: str
    steps: tuple[Step, ...]

    @staticmethod
    def parse(text: str) -> JsonPath:
        """Read a path; ValueError if it is not one.

        >>> JsonPath.parse("a..b")
        Traceback (most recent call last):
        ...
        ValueError: 'a..b' is not a path: '..b' cannot be read
        """
        steps: list[Step] = []
        rest = text.strip().removeprefix("$")
        while rest:
            match = STEP.match(rest)
            if match is None or (match["name"] and steps and not rest.startswith(".")):
                raise ValueError(f"{text!r} is not a path: {rest!r} cannot be read")
            if match["name"]:
                steps.append(match["name"].strip())
            else:
                steps.append(EVERY if match["place"] == "*" else int(match["place"]))
            rest = rest[match.end() :]
        if not steps and text.strip() != "$":
            raise ValueError("the path is empty")
        return JsonPath(text, tuple(steps))

    @property
    def stars(self) -> int:
        """How often `[*]` occurs."""
        return self.steps.count(EVERY)

    def split(self) -> tuple[JsonPath, JsonPath]:
        """The path up to and with its first `[*]`, and what follows it inside each item."""
        end = self.steps.index(EVERY) + 1
        return JsonPath(self.text, self.steps[:end]), JsonPath(self.text, self.steps[end:])

    def find(self, document: Any) -> Any:
        """The value at the path, or with `[*]` the list of values; LookupError if it is absent."""
        return _find(document, self.steps, "")

    def placed(self, template: Any, values: list[Any]) -> Any:
        """A copy of a template with the values at the path.

        Objects and lists on the way are made where the template has none. `[*]` makes a list of as
        many items as there are values, each like the first item of the template.

        >>> JsonPath.parse("instances[*].b64").placed({"k": 5}, ["AA", "BB"])
        {'k': 5, 'instances': [{'b64': 'AA'}, {'b64': 'BB'}]}
        """
        return _placed(template, self.steps, values)


def _find(value: Any, steps: tuple[Step, ...], place: str) -> Any:
    where = f"in {place}" if place else "at the top"
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if not isinstance(value, dict):
            raise LookupError(f"{where} is {kind_of(value)}, not an object with {step!r}")
        if step not in value:
            names = quoted(", ".join(map(str, value))) or "none"
            raise LookupError(f"there is no {step!r} {where} (the names there: {names})")
        return _find(value[step], rest, f"{place}.{step}".lstrip("."))
    if not isinstance(value, list):
        raise LookupError(f"{where} is {kind_of(value)}, not a list")
    if step is EVERY:
        return [_find(item, rest, f"{place}[{i}]") for i, item in enumerate(value)]
    if step >= len(value):
        raise LookupError(f"{where} is a list of {len(value)}, without an item [{step}]")
    return _find(value[step], rest, f"{place}[{step}]")


def _placed(template: Any, steps: tuple[Step, ...], values: list[Any]) -> Any:
    if not steps:
        return values[0]
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        fields = {} if template is None else template
        if not isinstance(fields, dict):
            raise ValueError(f"the template has {kind_of(fields)} where an object has {step!r}")
        return {**fields, step: _placed(fields.get(step), rest, values)}
    items = [] if template is None else template
    if not isinstance(items, list):
        raise ValueError(f"the template has {kind_of(items)} where a list is")
    if step is EVERY:
        like = items[0] if items else None
        return [_placed(deepcopy(like), rest, [value]) for value in values]
    longer = [*items, *[None] * (step + 1 - len(items))]
    longer[step] = _placed(longer[step], rest, values)
    return longer


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return "null" if value is None else kinds.get(type(value), "a number")
