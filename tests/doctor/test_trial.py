"""Simple restorations: help is recognised, and chance does not count as help."""

import numpy as np

from soda_tta.doctor.trial import RESTORATIONS, information_gains, try_restorations


def test_standard_contrast_removes_haze(make, haze, colour_model) -> None:
    model = colour_model()
    images = haze(make(90))
    finding = try_restorations([images[:50], images[50:]], model(images), model)
    assert finding.state == "good"
    assert finding.measurements["best"] == "standard contrast"
    assert finding.measurements["lower_bound"] > 0
    assert model.queries == 90 * (1 + len(RESTORATIONS))


def test_clear_images_leave_nothing_to_gain(make, colour_model) -> None:
    model = colour_model()
    images = make(90)
    finding = try_restorations([images[:50], images[50:]], model(images), model)
    assert finding.state == "caution"


def test_chance_counts_as_help_no_more_often_than_stated() -> None:
    false_alarms = 0
    for seed in range(100):
        generator = np.random.default_rng(seed)
        rows = generator.dirichlet(np.full(5, 0.3), (5, 60))
        gains = information_gains(rows[0], dict(zip("abcd", rows[1:], strict=True)), seed)
        false_alarms += any(bound > 0 for _, bound in gains.values())
    assert false_alarms <= 12  # five are expected, and twelve is three standard deviations more


def test_restorations_keep_the_shape_and_stay_finite(make) -> None:
    images = make(3)
    for restoration in RESTORATIONS.values():
        assert restoration(images).shape == images.shape
        assert np.isfinite(restoration(np.zeros_like(images))).all()


def test_restorations_do_what_their_names_say() -> None:
    generator = np.random.default_rng(0)
    noise = (0.5 + 0.1 * generator.standard_normal((4, 3, 16, 16))).astype(np.float32)
    assert RESTORATIONS["a slight blur"](noise).std() < 0.6 * noise.std()
    assert RESTORATIONS["sharpening"](noise).std() > 1.5 * noise.std()
    single = np.full((1, 3, 9, 9), 0.5, np.float32)
    single[:, :, 4, 4] = 1.0  # a single wrong pixel
    np.testing.assert_allclose(RESTORATIONS["a 3x3 median"](single), 0.5)
    dark = RESTORATIONS["standard contrast"](0.2 * noise)
    np.testing.assert_allclose(dark.mean(axis=(1, 2, 3)), 0.47, atol=0.01)
