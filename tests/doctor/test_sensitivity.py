"""Boxes that round pixels, look coarsely or do not look at all."""

import numpy as np
import pytest

from soda_tta.doctor.sensitivity import sensitivity


def look(make, ask, declared=None, noise=0.0):
    found = sensitivity(make(24), ask, declared, noise)
    return {finding.name: finding for finding in found}


def test_a_plain_model_sees_less_than_a_step(make, colour_model) -> None:
    found = look(make, colour_model())
    assert found["rounding"].state == found["sensitivity"].state == "good"
    assert 0 < found["sensitivity"].numbers["probability_moved"] < 0.1


@pytest.mark.parametrize("rounds", [np.rint, np.floor, lambda values: values.astype(np.uint8)])
def test_rounding_inside_a_function_is_found_out_although_nothing_declares_it(
    make, colour_model, rounds
) -> None:
    model = colour_model()
    found = look(make, lambda images: model(rounds(images * 255) / 255))
    assert found["rounding"].state == "caution" and "inside" in found["rounding"].sentence
    assert found["sensitivity"].numbers["largest_difference"] > 0


def test_compression_inside_is_rounding_too(make, colour_model) -> None:
    from soda_tta.box import CallableBox, Quantised

    assert (
        look(make, Quantised(CallableBox(colour_model()), jpeg=90))["rounding"].state == "caution"
    )


def test_declared_rounding_is_called_so(make, colour_model) -> None:
    found = look(make, colour_model(), declared=1 / 255)["rounding"]
    assert found.state == "caution" and "on their way" in found.sentence


def test_a_coarser_model_is_asked_for_the_first_step_it_sees(make, colour_model) -> None:
    model = colour_model(sharpness=20.0, then=lambda rows: np.rint(rows * 10) / 10)
    found = look(
        make,
        lambda images: model(
            images + 0.02 * np.sign(images - 0.5).mean(axis=(1, 2, 3), keepdims=True)
        ),
    )
    assert found["sensitivity"].state == "caution" and "rounding" not in found
    assert found["sensitivity"].numbers["first_step_seen"] in (4, 16)


def test_a_model_that_does_not_look_is_bad(make) -> None:
    found = look(make, lambda images: np.tile(np.array([0.7, 0.3]), (len(images), 1)))
    assert found["sensitivity"].state == "bad" and "images arrive" in found["sensitivity"].remedy


def test_a_brittle_model_is_named(make) -> None:
    def brittle(images):
        odd = np.rint(images[:, 0, 0, 0] * 255) % 2
        return np.stack([0.4 + 0.2 * odd, 0.6 - 0.2 * odd], axis=1)

    found = look(make, brittle)
    assert (
        found["sensitivity"].state == "caution"
        and found["sensitivity"].numbers["answers_changed"] > 0.1
    )


def test_noise_of_the_answers_is_not_taken_for_sight(make, colour_model) -> None:
    generator, model = np.random.default_rng(0), colour_model()

    def noisy(images):
        rows = model(np.rint(images * 255) / 255) + 1e-3 * generator.random((len(images), 6))
        return rows / rows.sum(axis=1, keepdims=True)

    assert look(make, noisy)["rounding"].state == "good"  # unaware of the noise, it is fooled
    assert look(make, noisy, noise=3e-3)["rounding"].state == "caution"
