"""Models that round pixels, respond coarsely or ignore their input."""

import numpy as np
import pytest

from soda_tta.doctor.sensitivity import check_sensitivity


def check(make, query, declared_step=None, noise=0.0):
    findings = check_sensitivity(make(24), query, declared_step, noise)
    return {finding.name: finding for finding in findings}


def test_a_smooth_model_responds_to_less_than_one_step(make, colour_model) -> None:
    findings = check(make, colour_model())
    assert findings["rounding"].state == findings["sensitivity"].state == "good"
    assert 0 < findings["sensitivity"].measurements["probability_moved"] < 0.1


@pytest.mark.parametrize("rounds", [np.rint, np.floor, lambda values: values.astype(np.uint8)])
def test_undeclared_rounding_inside_a_function_is_recognised(make, colour_model, rounds) -> None:
    model = colour_model()
    findings = check(make, lambda images: model(rounds(images * 255) / 255))
    rounding = findings["rounding"]
    assert rounding.state == "caution" and "internally" in rounding.sentence
    assert findings["sensitivity"].measurements["largest_difference"] > 0


def test_jpeg_compression_counts_as_rounding(make, colour_model) -> None:
    from soda_tta.box import CallableBox, Quantised

    compressed = Quantised(CallableBox(colour_model()), jpeg=90)
    assert check(make, compressed)["rounding"].state == "caution"


def test_declared_rounding_is_reported_as_such(make, colour_model) -> None:
    rounding = check(make, colour_model(), declared_step=1 / 255)["rounding"]
    assert rounding.state == "caution" and "before they reach the model" in rounding.sentence


def test_the_first_effective_step_of_a_coarse_model_is_measured(make, colour_model) -> None:
    model = colour_model(sharpness=20.0, then=lambda rows: np.rint(rows * 10) / 10)

    def coarse(images):
        return model(images + 0.02 * np.sign(images - 0.5).mean(axis=(1, 2, 3), keepdims=True))

    findings = check(make, coarse)
    assert findings["sensitivity"].state == "caution" and "rounding" not in findings
    assert findings["sensitivity"].measurements["first_effective_step"] in (4, 16)


def test_a_model_that_ignores_its_input_is_bad(make) -> None:
    finding = check(make, lambda images: np.tile([0.7, 0.3], (len(images), 1)))["sensitivity"]
    assert finding.state == "bad" and "images reach the model" in finding.remedy


def test_a_brittle_model_is_reported(make) -> None:
    def brittle(images):
        odd = np.rint(images[:, 0, 0, 0] * 255) % 2
        return np.stack([0.4 + 0.2 * odd, 0.6 - 0.2 * odd], axis=1)

    finding = check(make, brittle)["sensitivity"]
    assert finding.state == "caution" and finding.measurements["share_changed"] > 0.1


def test_noise_does_not_count_as_an_effect(make, colour_model) -> None:
    generator = np.random.default_rng(0)
    model = colour_model()

    def noisy(images):
        rows = model(np.rint(images * 255) / 255) + 1e-3 * generator.random((len(images), 6))
        return rows / rows.sum(axis=1, keepdims=True)

    # without the size of the noise, rounding is not recognised
    assert check(make, noisy)["rounding"].state == "good"
    assert check(make, noisy, noise=3e-3)["rounding"].state == "caution"
