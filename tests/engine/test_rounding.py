"""Probes that do not arrive: every method that estimates says so, and suggests a mu that helps."""

import numpy as np
import pytest

from soda_tta import adapt
from soda_tta.adaptors import PaperNetwork
from soda_tta.box import CallableBox, Input, Quantised
from soda_tta.engine.rounding import arriving_share, drowned_probes
from soda_tta.methods.registry import all_methods
from soda_tta.search import Backprop, MultiPoint

ESTIMATING = ("soda", "soda-o", "da-pl", "da-direct", "da-pgd", "da-zoo-input", "soda-office-home")


def uniform(images):
    return np.full((len(images), 4), 0.25, np.float32)


@pytest.fixture
def photographs() -> np.ndarray:
    """Smooth images; JPEG would keep nothing of noise."""
    rows, columns = np.mgrid[0:32, 0:32] / 32
    frequencies = ((1, 0), (0, 1), (1, 2), (2, 1))
    waves = [np.sin(2 * np.pi * (a * rows + b * columns)) for a, b in frequencies]
    images = [0.5 + 0.3 * np.stack([wave, -wave, 0.5 * wave]) for wave in waves]
    return np.stack(images).astype(np.float32)


def test_the_share_that_arrives_agrees_with_a_calculation_by_hand() -> None:
    box = Quantised(CallableBox(uniform))
    here = np.zeros((1, 3, 1, 2), np.float32)
    there = here + np.array([0.6, 0.4], np.float32) / 255  # arrives as 1 and 0 steps
    assert arriving_share(np.stack([here, there]), box) == pytest.approx(0.6 / np.hypot(0.6, 0.4))
    assert arriving_share(np.stack([here, here + np.float32(0.4 / 255)]), box) == 0.0
    assert arriving_share(np.stack([here, there]), CallableBox(uniform)) == pytest.approx(1.0)


def test_a_model_that_takes_bytes_is_known_to_round(photographs) -> None:
    box = CallableBox(uniform, input=Input(dtype="uint8"))
    np.testing.assert_array_equal(
        box.as_received(photographs), Quantised(CallableBox(uniform)).as_received(photographs)
    )


@pytest.mark.parametrize("quality", [None, 95, 80, 50])
def test_with_the_suggested_mu_most_of_a_probe_arrives(photographs, quality) -> None:
    box = Quantised(CallableBox(uniform), jpeg=quality)
    adaptor = PaperNetwork().build(seed=0)
    notice = drowned_probes(MultiPoint(), adaptor, photographs, box, 0)
    mu = float(notice.split("mu=")[1].rstrip(")."))
    assert drowned_probes(MultiPoint(mu=mu), adaptor, photographs, box, 0) is None
    assert mu == 0.02 or quality


def test_where_no_mu_helps_another_method_is_suggested() -> None:
    class Constant(Quantised):
        def transported(self, images):
            return np.zeros_like(images)

    images = np.full((2, 3, 8, 8), 0.5, np.float32)
    box = Constant(CallableBox(uniform))
    adaptor = PaperNetwork(width=4).build(seed=0)
    notice = drowned_probes(MultiPoint(), adaptor, images, box, 0)
    assert "no mu helps; use method='soda-e'" in notice
    assert drowned_probes(Backprop(), adaptor, images, box, 0) is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATING)
def test_every_method_that_estimates_gives_one_notice(name, photographs) -> None:
    settings = {"epochs": 1}
    if name == "soda-o":
        settings["queue"] = 0
    if "width" in all_methods()[name].settings:
        settings["width"] = 4
    for box, count in ((Quantised(CallableBox(uniform)), 1), (CallableBox(uniform), 0)):
        run = adapt(photographs, box, method=name, **settings)
        assert len([text for text in run.notices if "rounding noise" in text]) == count
