"""Our own methods, boxes, adaptors and searches pass the checks that we offer to others."""

import numpy as np
import pytest

from soda_tta import all_methods
from soda_tta.adaptors import Bank, Identity, PaperNetwork
from soda_tta.box import Batched, Box, Cached, CallableBox, Quantised, Retrying
from soda_tta.box.meter import Meter
from soda_tta.search import Backprop, Evolution, MultiPoint, PerImage
from soda_tta.search.descent import Descent
from soda_tta.testing import check_adaptor, check_box, check_method, check_search
from soda_tta.testing.data import make_black_box, make_images, make_white_box

FAST = {
    "epochs": 2,
    "batch": 32,
    "width": 4,
    "arrival": 32,
    "queue": 16,
    "finetune_epochs": 1,
    "warmup": 1,
}

HELPER = "soda_tta.testing.data:make_white_box"
MORE = {"beta26": {"helper": HELPER}, "tta": {"views": 3}, "zero": {"views": 11}}


def fast_settings(name: str) -> dict:
    """Those of the fast settings that a method has."""
    own = all_methods()[name].settings
    return {key: value for key, value in FAST.items() if key in own} | MORE.get(name, {})


@pytest.mark.parametrize("name", list(all_methods()))
def test_every_method_passes(name: str) -> None:
    check_method(name, **fast_settings(name))


@pytest.mark.parametrize("settings", [{}, {"fuse": 0.4}], ids=str)
def test_the_default_method_passes_with_a_helper(settings: dict, monkeypatch) -> None:
    monkeypatch.setattr("soda_tta.methods.economy_helper.FREE_QUERIES", 1200)
    check_method("soda-e", batch=24, helper=HELPER, **settings)


@pytest.mark.parametrize("variant", ["helper", "helper-adapted", "f0", "f1", "f2", "framed"])
def test_every_control_of_beta26_passes(variant: str) -> None:
    check_method("beta26", batch=32, helper=HELPER, variant=variant)


@pytest.mark.parametrize(
    "search",
    [
        *(MultiPoint(), MultiPoint(central=True), MultiPoint(orthogonal=True, subspace=4)),
        *(PerImage(groups=8), Evolution(), Evolution(diagonal=True), Backprop()),
    ],
    ids=repr,
)
def test_every_search_passes(search) -> None:
    check_search(search)


@pytest.mark.parametrize(
    "adaptor",
    [
        Identity(),
        PaperNetwork(width=4).build(seed=0),
        PaperNetwork(width=4, blocks=1, pairs=1, activation="relu").build(seed=0),
        PaperNetwork(width=4, residual=False).build(seed=0),
        Bank.for_size((16, 16)).build(),
    ],
    ids=lambda adaptor: adaptor.kind,
)
def test_every_adaptor_passes(adaptor) -> None:
    check_adaptor(adaptor)


def test_a_bank_whose_parameters_were_found_passes() -> None:
    bank = Bank.for_size((16, 16)).build()
    random = np.random.default_rng(0)
    bank.parameters = (0.3 * random.standard_normal(bank.parameters.size)).astype(np.float32)
    check_adaptor(bank)


BOXES = {
    "callable": make_black_box,
    "module": make_white_box,
    "batched": lambda: Batched(make_black_box(), batch=5, workers=2),
    "cached": lambda: Cached(make_black_box()),
    "retrying": lambda: Retrying(make_black_box()),
    "quantised": lambda: Quantised(make_black_box()),
    "metered": lambda: Meter(make_black_box()).asking("probe"),
}


@pytest.mark.parametrize("kind", list(BOXES))
def test_every_box_passes(kind: str) -> None:
    check_box(BOXES[kind]())


# The checks must fail for what is wrong.


class Careless(Box):
    """A box that does not check what it is given or returns."""

    def __init__(self, respond) -> None:
        self.respond = respond

    def __call__(self, images):
        return self.respond(images)

    def answer(self, images):
        return self.respond(images)


@pytest.mark.parametrize(
    ("respond", "words"),
    [
        (lambda images: np.ones((len(images), 2), np.float32), "sums to 1"),
        (lambda images: np.full((len(images), 2), 0.5), "float32"),
        (lambda images: np.full((1, 2), 0.5, np.float32), "one row per image"),
        (lambda images: images.fill(0) or np.full((len(images), 2), 0.5, np.float32), "not change"),
    ],
)
def test_a_careless_box_fails(respond, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_box(Careless(respond))


def test_a_model_that_looks_at_neighbours_fails() -> None:
    def respond(images):
        share = 0.1 + 0.8 * images.mean() * np.ones(len(images))
        return np.stack([share, 1 - share], axis=1)

    with pytest.raises(AssertionError, match="neighbours"):
        check_box(CallableBox(respond))


def test_an_adaptor_that_leaves_the_pixel_range_fails() -> None:
    class Loud(Identity):
        kind = "loud"

        def candidates(self, images, thetas, noise=None):
            return np.broadcast_to(images + np.float32(1), (len(thetas), *images.shape))

    with pytest.raises(AssertionError, match=r"\[0, 1\]"):
        check_adaptor(Loud(), make_images(4))


def test_a_search_that_forgets_its_state_fails() -> None:
    class Forgetful(Descent):
        wants = "gradient"
        adds_known_slope = False

        def ask(self):
            return self.theta[None]

        def tell(self, values, known_slope=0.0):
            self.move(np.asarray(values) / (1 + self.count))

        def restore(self, state):
            self.theta = state["theta"]

    class Settings(Backprop):
        def start(self, theta, *, step, units=1.0, seed=0):
            return Forgetful(theta, step)

    with pytest.raises(AssertionError, match="restored"):
        check_search(Settings())
