"""The REST box against real LitServe and BentoML servers: the same answers as the local model."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from soda_tta import adapt, load_box
from soda_tta.box import Box, Quantised
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
def images(digits) -> np.ndarray:
    """40 hazy digits, of bytes."""
    return digits[1][:40]


@pytest.fixture
def local(digits) -> Box:
    """The same model in this process, behind the same 8-bit images."""
    return Quantised(load_box(digits[0]))


def test_litserve_gives_what_the_file_gives(litserve_url, api, images, local) -> None:
    box = load_box(api(f"{litserve_url}/predict", IN_JSON, PAIRS))
    np.testing.assert_allclose(box(images), local(images), atol=1e-6)


def test_the_top_classes_of_litserve(litserve_url, api, images, local) -> None:
    image = f"{IN_JSON}\ntemplate = {{top = 3}}"
    rows = load_box(api(f"{litserve_url}/predict", image, f"{PAIRS}\ntop = 3"))(images)
    whole = local(images)
    best = np.argsort(-whole, axis=1)[:, :3]
    np.testing.assert_allclose(
        np.take_along_axis(rows, best, 1), np.take_along_axis(whole, best, 1), atol=1e-6
    )
    with pytest.raises(BoxError, match=r"3 of 10 classes; .* set top = 3"):
        load_box(api(f"{litserve_url}/predict", image, PAIRS))(images)


@pytest.mark.parametrize(
    ("path", "image"), [("classify", 'send = "multipart"'), ("raw", 'send = "body"')]
)
def test_bentoml_gives_what_the_file_gives(bentoml_url, api, images, local, path, image) -> None:
    box = load_box(api(f"{bentoml_url}/{path}", image, BY_LABEL))
    np.testing.assert_allclose(box(images), local(images), atol=1e-6)


def test_jpeg_through_bentoml_is_what_the_search_expects(bentoml_url, api, images, local) -> None:
    image = 'format = "jpeg"\nquality = 70'
    box = load_box(api(f"{bentoml_url}/raw", image, BY_LABEL))
    expected = local(box.as_received(images))
    np.testing.assert_allclose(box(images), expected, atol=1e-6)
    assert np.abs(box(images) - local(images)).max() > 1e-3


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


def test_a_whole_run_finds_what_it_finds_with_the_local_model(
    bentoml_url, api, digits, local
) -> None:
    images = digits[1][:64]
    box = load_box(api(f"{bentoml_url}/raw", 'send = "body"', BY_LABEL))
    run = adapt(images, box, budget=40)
    same = adapt(images, local, budget=40)
    assert run.ledger.by_purpose() == same.ledger.by_purpose()
    assert run.ledger.calls == run.ledger.total > 800 and run.ledger.queries["probe"] > 500
    np.testing.assert_allclose(run.probabilities, same.probabilities, atol=1e-5)


def test_the_commands_of_the_page(bentoml_url, api, images, tmp_path: Path) -> None:
    file = tmp_path / "images.npy"
    np.save(file, np.rint(images * 255).astype(np.uint8).transpose(0, 2, 3, 1))
    description = api(f"{bentoml_url}/classify", 'send = "multipart"', BY_LABEL)
    words = ["adapt", "--model", description, "--images", str(file), "--method", "deployed"]
    words += ["--out", str(tmp_path / "run"), "--price", "0.002 per call", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "soda_tta", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["box"]["fingerprint"].startswith(bentoml_url)
    assert (facts["calls"], facts["cost"]) == (40, pytest.approx(0.08))
