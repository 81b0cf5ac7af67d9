"""The table of facts drives validation, cards, options and what carries over to another model."""

import argparse
from dataclasses import fields

import pytest

from soda_tta.box import Box, Input
from soda_tta.box.facts import (
    CARRIED_OVER,
    FACTS,
    INPUT_FACTS,
    OUTPUT_FACTS,
    as_options,
    carried_over,
    unusual,
)
from soda_tta.cli.model_options import MODEL_OPTIONS, add_model


def test_the_table_has_every_field_of_an_input_and_a_box_has_every_output_fact() -> None:
    assert list(INPUT_FACTS) == [field.name for field in fields(Input)]
    for name, fact in OUTPUT_FACTS.items():
        assert getattr(Box, name) == fact.default


def test_every_fact_has_a_help_text_and_a_valid_default() -> None:
    for fact in FACTS.values():
        assert fact.meaning
        fact.check(fact.name, fact.default, Input())


def test_what_carries_over_is_marked_in_the_table() -> None:
    output = {"logits", "partial", "background"}
    geometry = {"crop", "turn", "mirror"}
    pixels = {"layout", "channels", "pixel_range", "mean", "std"}
    carried = output | geometry | pixels
    assert set(CARRIED_OVER) == carried
    assert all(FACTS[name].flag in as_options({name: True}) for name in CARRIED_OVER)


def card(*, logits: bool = False, partial: bool = False, **facts: object) -> dict:
    return {"input": Input(**facts).card(), "logits": logits, "partial": partial}


def test_a_model_with_the_usual_facts_needs_no_option() -> None:
    assert unusual(card()) == {}
    assert unusual(card(dtype="uint8", size=8)) == {}
    assert unusual({}) == {}


def test_unusual_facts_are_those_that_differ_from_the_default() -> None:
    facts = {"layout": "NHWC", "channels": "BGR", "pixel_range": 255.0, "mean": (1.0, 2.0, 3.0)}
    assert unusual(card(partial=True, **facts)) == {"partial": True, **facts}
    assert unusual(card(dtype="uint8", pixel_range=1.0)) == {"pixel_range": 1.0}


NORMALISED = {"mean": (0.5, 0.5, 0.5), "pixel_range": 255.0}
CARRIED = {
    "nothing declared": ({}, {"layout": "NHWC", "logits": True, **NORMALISED}),
    "another layout": ({"layout": "NCHW"}, {"logits": True, **NORMALISED}),
    "the same type": ({"dtype": "float32"}, {"layout": "NHWC", "logits": True, **NORMALISED}),
    "half precision": ({"dtype": "float16"}, {"layout": "NHWC", "logits": True, **NORMALISED}),
    "bytes": ({"dtype": "uint8"}, {"layout": "NHWC", "logits": True}),
    "a mean": ({"mean": [0, 0, 0]}, {"layout": "NHWC", "logits": True}),
    "a standard deviation": ({"std": [1, 1, 1]}, {"layout": "NHWC", "logits": True}),
    "probabilities": ({"logits": False}, {"layout": "NHWC", **NORMALISED}),
}


@pytest.mark.parametrize(("declared", "expected"), CARRIED.values(), ids=CARRIED)
def test_a_fact_carries_over_unless_the_other_model_declares_otherwise(
    declared: dict, expected: dict
) -> None:
    assert carried_over(card(logits=True, layout="NHWC", **NORMALISED), declared) == expected


@pytest.mark.parametrize(
    ("channels", "declared", "carries"),
    [
        ("BGR", {"grey": False}, True),
        ("BGR", {"grey": True}, False),
        ("L", {"grey": True}, True),
        ("L", {"grey": False}, False),
        ("BGR", {"channels": "RGB"}, False),
        ("BGR", {}, True),
    ],
)
def test_the_channel_order_carries_over_between_models_of_the_same_depth(
    channels: str, declared: dict, carries: bool
) -> None:
    expected = {"channels": channels} if carries else {}
    assert carried_over(card(channels=channels), declared) == expected


def test_between_models_of_bytes_normalisation_carries_over() -> None:
    learned = card(dtype="uint8", mean=1.0)
    assert carried_over(learned, {"dtype": "uint8"}) == {"mean": (1.0, 1.0, 1.0)}
    assert carried_over(learned, {"dtype": "float32"}) == {}


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_model(parser)
    return parser.parse_args(["--model", "m.onnx", *words])


def test_facts_written_as_options_are_read_back() -> None:
    facts = unusual(
        card(logits=True, layout="NHWC", channels="BGR", pixel_range=255.0, mean=(0.5, 0.25, 0.125))
    )
    options = parsed(*as_options(facts))
    assert {name: getattr(options, name) for name in facts} == facts


def test_an_option_that_is_not_passed_is_not_stated() -> None:
    assert all(getattr(parsed(), name) is None for name in MODEL_OPTIONS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mean", "a,b"], "'a,b' is not a number, or three separated by commas"),
        (["--pixel-range", "much"], "could not convert string to float: 'much'"),
        (["--layout", "CHWN"], "invalid choice: 'CHWN'"),
    ],
)
def test_an_invalid_value_is_refused_by_the_command_line(words, message, capsys) -> None:
    with pytest.raises(SystemExit):
        parsed(*words)
    assert message in capsys.readouterr().err
