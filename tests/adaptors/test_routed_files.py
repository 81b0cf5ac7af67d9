"""A router in an adaptor file: its numbers are tensors, and what is damaged is refused."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

from soda_tta.adaptors import Adaptor, RoutedAdaptor
from soda_tta.adaptors.files import KEY, MOST, read_adaptor_file, write_adaptor_file
from soda_tta.errors import RunError

IMAGES = np.random.default_rng(0).random((2, 3, 8, 8), np.float32)
ROUTER = "settings/router/"

Content = tuple[dict[str, np.ndarray], dict[str, Any]]


@pytest.fixture
def content(tmp_path: Path, routed_adaptor: RoutedAdaptor) -> Content:
    """The tensors and the description of a file."""
    path = tmp_path / "whole.safetensors"
    routed_adaptor.save(path)
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, json.loads(  # noqa: SIM118
            file.metadata()[KEY]
        )


def load(tensors: dict[str, np.ndarray], description: Any, folder: Path) -> Adaptor:
    """Load an adaptor from this content."""
    path = folder / "a.safetensors"
    path.write_bytes(save(tensors, {KEY: json.dumps(description)}))
    return Adaptor.load(path)


def test_the_numbers_of_the_router_are_tensors_in_full_precision(content: Content) -> None:
    tensors, description = content
    names = ("centre", "emphasis", "weights", "means", "covariances", "owners", "radius")
    assert sorted(tensors) == sorted(["parameters", *(ROUTER + name for name in names)])
    assert tensors[ROUTER + "covariances"].dtype == np.float64
    assert tensors[ROUTER + "owners"].tolist() == [0, 1]
    assert description["settings"]["router"]["centre"] == {"tensor": ROUTER + "centre"}
    assert "brightness" in description["settings"]["router"]["statistics"]


def test_numbers_come_back_as_they_were(tmp_path: Path) -> None:
    settings = {
        "plain": [1.0, 0.1, float("inf")],
        "deep": [{"rows": [[1, 2], [3, 4]]}, {"rows": [[0.5]]}],
        "mixed": [1, 2.5],  # no array gives this back
        "ragged": [[1.0], [2.0, 3.0]],
        "others": [True, False],
        "names": ["a", "b"],
        "huge": [10**30],
        "none": [],
    }
    path = tmp_path / "a.safetensors"
    write_adaptor_file(path, "any", settings, np.zeros(2))
    loaded = read_adaptor_file(path).settings
    assert repr({name: loaded[name] for name in settings}) == repr(settings)


def changed_at(index: Any, value: float) -> Callable[[np.ndarray], np.ndarray]:
    """A change of one number."""

    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array[index] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("centre", changed_at(0, np.nan), "not numbers of at most"),
        ("means", changed_at(0, np.inf), "not numbers of at most"),
        ("emphasis", lambda array: array * 0, "emphasis of its router is zero"),
        ("emphasis", lambda array: array[:-1], r"has shape \(16, 17\), not \(17, 17\)"),
        ("weights", changed_at(1, 0.0), "without weight"),
        ("weights", lambda array: array[:0], "has shape|no Gaussians"),
        ("means", lambda array: array.ravel(), r"means of its router has shape \(34,\)"),
        ("covariances", lambda array: -array, "not positive definite"),
        ("covariances", changed_at((0, 1, 2), 5.0), "not symmetric"),
        ("owners", changed_at(1, 2), "3 conditions needs as many"),
        ("owners", changed_at(1, -1), "are not conditions"),
        ("owners", changed_at(1, 10**15), "are not conditions|at most"),
        ("owners", lambda array: array + 0.5, "are not conditions"),
        ("radius", changed_at(0, np.nan), "not a distance"),
        ("radius", changed_at(0, -1.0), "not a distance"),
        ("means", lambda array: np.zeros((MOST + 1, 0)), "too large"),  # no byte, many rows
    ],
)
def test_a_damaged_router_is_refused(
    tmp_path: Path, content: Content, name: str, change: Any, message: str
) -> None:
    tensors, description = content
    tensors[ROUTER + name] = np.ascontiguousarray(change(tensors[ROUTER + name]))
    with pytest.raises(RunError, match=message):
        load(tensors, description, tmp_path)


def test_statistics_of_another_version_are_refused(tmp_path: Path, content: Content) -> None:
    tensors, description = content
    description["settings"]["router"]["statistics"].append("warmth")
    with pytest.raises(RunError, match="other statistics than this version's; use the version"):
        load(tensors, description, tmp_path)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every entry of the description."""
    entries = enumerate(value) if isinstance(value, list) else getattr(value, "items", tuple)()
    for key, inner in entries:
        yield (*path, key)
        if "parts" not in path:  # those are a matter of the bank
            yield from places_in(inner, (*path, key))


VALUES = [None, -1, float("nan"), 1e308, "x\x1b[2J", [], {"tensor": "x"}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_every_entry_may_be_damaged(tmp_path: Path, content: Content, value: Any) -> None:
    tensors, description = content
    text = json.dumps(description)
    for *way, last in places_in(description):
        damaged = json.loads(text)
        inner = damaged
        for key in way:
            inner = inner[key]
        inner[last] = value
        try:
            adaptor = load(tensors, damaged, tmp_path)
        except RunError as error:
            assert "a.safetensors" in str(error) and str(error).isprintable()
        else:  # one that is loaded can be used
            assert np.isfinite(adaptor(IMAGES)).all() and adaptor.describe().isprintable()
