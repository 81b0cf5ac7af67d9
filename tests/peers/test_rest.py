"""The REST box against real LitServe and BentoML servers: the same answers as the local model."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.errors import BoxError

pytestmark = pytest.mark.peers

NAMES = [f"digit {index}" for index in range(10)]
PAIRS = 'labels = "predictions[*][*].label"\nscores = "predictions[*][*].score"'
IN_JSON = 'send = "json"\npath = "instances[*].b64"\nper_request = 8'
BY_LABEL = 'scores = "$"'


@pytest.fixture
def api(tmp_path: Path) -> Callable[..., str]:
    """Writes a description; returns its path."""

    def write(url: str, image: str, answer: str) -> str:
        path = tmp_path / "api.toml"
        path.write_text(
            f'url = "{url}"\nclasses = {json.dumps(NAMES)}\n[image]\n{image}\n[answer]\n{answer}\n'
        )
        return str(path)

    return write


@pytest.fixture
def images() -> np.ndarray:
    """40 images of bytes."""
    levels = np.random.default_rng(1).integers(0, 256, (40, 3, 16, 16))
    return (levels / np.float32(255)).astype(np.float32)


def test_litserve_gives_what_the_file_gives(litserve_url, small_model, api, images) -> None:
    box = load_box(api(f"{litserve_url}/predict", IN_JSON, PAIRS))
    np.testing.assert_allclose(box(images), load_box(small_model)(images), atol=1e-6)


def test_the_top_classes_of_litserve(litserve_url, small_model, api, images) -> None:
    image = f"{IN_JSON}\ntemplate = {{top = 3}}"
    rows = load_box(api(f"{litserve_url}/predict", image, f"{PAIRS}\ntop = 3"))(images)
    whole = load_box(small_model)(images)
    best = np.argsort(-whole, axis=1)[:, :3]
    np.testing.assert_allclose(
        np.take_along_axis(rows, best, 1), np.take_along_axis(whole, best, 1), atol=1e-6
    )
    with pytest.raises(BoxError, match=r"3 of 10 classes; .* set top = 3"):
        load_box(api(f"{litserve_url}/predict", image, PAIRS))(images)


@pytest.mark.parametrize(
    ("path", "image"), [("classify", 'send = "multipart"'), ("raw", 'send = "body"')]
)
def test_bentoml_gives_what_the_file_gives(
    bentoml_url, small_model, api, images, path, image
) -> None:
    box = load_box(api(f"{bentoml_url}/{path}", image, BY_LABEL))
    np.testing.assert_allclose(box(images), load_box(small_model)(images), atol=1e-6)


def test_jpeg_through_bentoml_is_what_the_search_expects(
    bentoml_url, small_model, api, images
) -> None:
    image = 'format = "jpeg"\nquality = 70'
    box = load_box(api(f"{bentoml_url}/raw", image, BY_LABEL))
    expected = load_box(small_model)(box.as_received(images))
    np.testing.assert_allclose(box(images), expected, atol=1e-6)
    assert np.abs(box(images) - load_box(small_model)(images)).max() > 1e-3


@pytest.mark.parametrize(
    ("path", "image", "message"),
    [
        ("classify", 'send = "multipart"\nfield = "photo"', r"answered 500.*check \[image\]"),
        ("classify", 'send = "body"', r"answered 4\d\d"),
        ("nothing", 'send = "body"', "answered 404.*check url"),
    ],
)
def test_what_bentoml_refuses_is_a_clear_error(
    bentoml_url, api, images, path, image, message
) -> None:
    with pytest.raises(BoxError, match=message):
        load_box(api(f"{bentoml_url}/{path}", image, BY_LABEL))(images[:1])


def test_what_litserve_refuses_is_a_clear_error(litserve_url, api, images) -> None:
    wrong = 'send = "json"\npath = "images[*]"\nper_request = 8'
    with pytest.raises(BoxError, match=r"answered 500.*check \[image\]"):
        load_box(api(f"{litserve_url}/predict", wrong, PAIRS))(images[:1])


def test_a_whole_run_through_bentoml(bentoml_url, api, images, tmp_path: Path) -> None:
    file = tmp_path / "images.npy"
    np.save(file, np.rint(images * 255).astype(np.uint8).transpose(0, 2, 3, 1))
    description = api(f"{bentoml_url}/raw", 'send = "body"', BY_LABEL)
    words = ["adapt", "--model", description, "--images", str(file), "--budget", "12"]
    words += ["--out", str(tmp_path / "run"), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "soda_tta", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["box"]["fingerprint"].startswith(bentoml_url)
    assert sum(facts["queries"].values()) <= 12 * len(images)
