"""A plain restoration that helps is recognised; chance is not taken for help."""

import numpy as np

from soda_tta.doctor.trial import RESTORATIONS, gains, trial


def test_haze_is_undone_by_usual_contrast(make, haze, colour_model) -> None:
    model, images = colour_model(), haze(make(90))
    found = trial([images[:50], images[50:]], model(images), model)
    assert (
        found.state == "good"
        and found.numbers["best"] == "usual contrast"
        and found.numbers["low"] > 0
    )
    assert model.asked == 90 * (1 + len(RESTORATIONS))


def test_clear_images_leave_nothing_to_gain(make, colour_model) -> None:
    model, images = colour_model(), make(90)
    assert trial([images[:50], images[50:]], model(images), model).state == "caution"


def test_chance_is_taken_for_help_no_more_often_than_stated() -> None:
    wrong = 0
    for seed in range(100):
        generator = np.random.default_rng(seed)
        rows = generator.dirichlet(np.full(5, 0.3), (5, 60))
        found = gains(rows[0], dict(zip("abcd", rows[1:], strict=True)), seed)
        wrong += any(low > 0 for _, low in found.values())
    assert wrong <= 12  # five expected; twelve is three standard deviations above


def test_restorations_give_images_of_the_same_shape(make) -> None:
    images = make(3)
    for restore in RESTORATIONS.values():
        assert (
            restore(images).shape == images.shape
            and np.isfinite(restore(np.zeros_like(images))).all()
        )
