"""Every command works at the model's own size: the model gets the same pixels from all of them."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from soda_tta import Stream, adapt, apply, examine, load_box
from soda_tta.adaptors import Identity
from soda_tta.box.view import View
from soda_tta.data import open_images
from soda_tta.engine import working_size
from soda_tta.engine.working_size import at_working_size
from soda_tta.report.examples import open_run_images
from soda_tta.report.record import record_of
from soda_tta.types import Array

FRAMES = np.random.default_rng(0).integers(0, 256, (30, 18, 32, 3), np.uint8)
SIZE = (8, 8)
ALL = slice(None)


class Recorder:
    """A model that remembers what it was asked about first."""

    def __init__(self) -> None:
        self.first: Array | None = None

    def __call__(self, images: Array) -> Array:
        if self.first is None:
            self.first = images.copy()
        share = images.mean(axis=(1, 2, 3))
        return np.stack([share, 1 - share], axis=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The frames as files."""
    (tmp_path / "frames").mkdir()
    for number, frame in enumerate(FRAMES):
        Image.fromarray(frame).save(tmp_path / "frames" / f"{number:02}.png")
    return tmp_path / "frames"


def test_the_model_gets_the_same_pixels_from_every_command(folder: Path) -> None:
    expected = View(SIZE)(open_images(FRAMES)[ALL])
    commands = {
        "adapt": lambda box: adapt(folder, box, method="deployed"),
        "apply": lambda box: apply(Identity(), folder, box),
        "doctor": lambda box: examine(folder, box, clean=folder),
        "stream": lambda box: Stream(box, queue=4, width=2, epochs=1)(folder),
        "the model itself": lambda box: box(open_images(FRAMES)[ALL]),
    }
    for name, command in commands.items():
        model = Recorder()
        command(load_box(model, size=SIZE))
        assert model.first is not None
        np.testing.assert_array_equal(model.first, expected, err_msg=name)


def test_the_search_works_at_the_models_size_and_the_card_states_it(folder: Path) -> None:
    run = adapt(folder, load_box(Recorder(), size=SIZE), method="soda", epochs=1, width=2)
    facts = run.card.images
    assert facts["size"] == [8, 8] and facts["original_size"] == [18, 32]
    assert facts["resize"] == "32x18 resized to the model's 8x8 (bilinear, aspect ratio not kept)"
    assert run.names[0] == "00.png"
    shown = open_run_images(folder, record_of(run))  # checks the fingerprint
    assert shown.size == SIZE


@pytest.mark.parametrize("model_size", [None, (18, 32), (32, 32)])
def test_images_of_that_size_smaller_ones_and_any_size_stay_as_they_are(model_size) -> None:
    images = open_images(FRAMES)
    assert at_working_size(images, None if model_size is None else View(model_size)) is images


def test_a_size_that_the_user_specified_stays(folder: Path) -> None:
    images = open_images(folder, (16, 16))
    assert at_working_size(images, View(SIZE)) is images


def test_files_are_decoded_once_and_large_pixels_are_released(folder: Path, monkeypatch) -> None:
    images = open_images(folder)
    small = at_working_size(images, View(SIZE))
    first = small[[3, 1, 3]]
    np.testing.assert_array_equal(small[ALL][[3, 1, 3]], first)
    assert not images._computed.any()
    monkeypatch.setattr(View, "__call__", None)  # not called again
    assert small[ALL].shape == (30, 3, *SIZE) and small.path(2) == folder / "02.png"


def test_a_set_that_is_too_large_to_keep_is_resized_each_time(folder: Path, monkeypatch) -> None:
    kept = at_working_size(open_images(folder), View(SIZE))
    monkeypatch.setattr(working_size, "KEPT_BYTES", 1)
    again = at_working_size(open_images(folder), View(SIZE))
    np.testing.assert_array_equal(again[ALL], kept[ALL])
    assert again.fingerprint() == kept.fingerprint()
