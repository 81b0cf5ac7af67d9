"""Named random streams: two purposes never draw the same numbers."""

import inspect
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.randomness import RandomStream, generator

SEEDS = st.integers(0, 2**40)
PLACES = st.lists(st.integers(0, 2**20), max_size=3)
STREAMS = st.sampled_from(list(RandomStream))


def draw(seed: int, stream: RandomStream, *place: int) -> np.ndarray:
    return generator(seed, stream, *place).integers(0, 2**62, 8)


def test_no_two_streams_share_a_number() -> None:
    # An enum silently makes a second name of a number that is used twice an alias.
    assert len(RandomStream.__members__) == len(set(RandomStream))
    lines = inspect.getsource(RandomStream).splitlines()
    assert sum(line.strip()[:1].isupper() and " = " in line for line in lines) == len(RandomStream)
    assert all(stream > 0 for stream in RandomStream)


def test_the_numbers_of_streams_never_change() -> None:
    """Stored results depend on them. New streams get new numbers and are added here."""
    numbers = {stream.name: stream.value for stream in RandomStream}
    released = {
        "ORDER": 1,
        "NOISE": 2,
        "DIRECTIONS": 3,
        "ARRIVAL": 4,
        "MIXING": 5,
        "SUBSPACE": 6,
        "STUDENT": 7,
        "MODEL_ORDER": 8,
        "SPLIT": 11,
        "ROUNDS": 12,
        "GENERATIONS": 13,
    }
    assert released.items() <= numbers.items()


@pytest.mark.parametrize(("first", "second"), combinations(RandomStream, 2))
def test_two_streams_draw_different_numbers(first: RandomStream, second: RandomStream) -> None:
    for place in ((), (0,), (3, 1)):
        assert not (draw(0, first, *place) == draw(0, second, *place)).any()


@given(SEEDS, STREAMS, PLACES)
def test_a_generator_is_a_function_of_its_arguments(seed, stream, place) -> None:
    expected = draw(seed, stream, *place)
    np.random.default_rng(1).random(100)  # draws elsewhere have no effect
    draw(seed + 1, stream, *place)
    np.testing.assert_array_equal(draw(seed, stream, *place), expected)


@given(SEEDS, STREAMS, st.integers(0, 2**20), st.integers(0, 2**20))
def test_another_seed_or_place_draws_other_numbers(seed, stream, first, second) -> None:
    expected = draw(seed, stream, first, second)
    assert not (draw(seed + 1, stream, first, second) == expected).any()
    assert not (draw(seed, stream, first + 1, second) == expected).any()
    assert not (draw(seed, stream, first, second + 1) == expected).any()
    if first != second:
        assert not (draw(seed, stream, second, first) == expected).any()


def test_numpys_global_state_is_not_used() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - it must not change
    draw(0, RandomStream.ORDER, 1)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        generator(-1, RandomStream.ORDER)
