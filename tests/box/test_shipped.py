"""The descriptions that come with the package."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from soda_tta.box import load_box
from soda_tta.box.shipped import FOLDER, shipped_description, shipped_descriptions
from soda_tta.errors import BoxError
from soda_tta.protocols.image_files import encode_request
from soda_tta.protocols.rest_answer import read_answer
from soda_tta.protocols.rest_file import read_description

# Answers as the public documentation of each API shows them, for the two classes of the file.
ANSWERS = {
    "hugging-face": [
        {"label": "second class", "score": 0.75},
        {"label": "first class", "score": 0.25},
    ],
    "vertex-ai": {
        "predictions": [
            {
                "ids": ["7", "9"],
                "displayNames": ["second class", "first class"],
                "confidences": [0.75, 0.25],
            }
        ],
        "deployedModelId": "1",
    },
    "azure-custom-vision": {
        "id": "0",
        "predictions": [
            {"tagId": "a", "tagName": "second tag", "probability": 0.75},
            {"tagId": "b", "tagName": "first tag", "probability": 0.25},
        ],
    },
    "aws-rekognition": {
        "CustomLabels": [
            {"Name": "second label", "Confidence": 75.0},
            {"Name": "first label", "Confidence": 25.0},
        ]
    },
}
# Where the image stands in the request.
IMAGES = {
    "hugging-face": lambda body: body["inputs"],
    "vertex-ai": lambda body: body["instances"][0]["content"],
    "aws-rekognition": lambda body: body["Image"]["Bytes"],
}


def test_there_is_one_for_each_api() -> None:
    assert set(shipped_descriptions()) == set(ANSWERS)
    with pytest.raises(BoxError, match="did you mean 'vertex-ai'"):
        shipped_description("vertex")


@pytest.mark.parametrize("name", ANSWERS)
def test_it_says_that_it_was_not_run(name: str) -> None:
    first = shipped_description(name).splitlines()[0]
    assert first == "# Written from the public documentation; not run."


@pytest.mark.parametrize("name", ANSWERS)
def test_it_reads_the_documented_answer(name: str) -> None:
    description = read_description(FOLDER / f"{name}.toml")
    rows = read_answer(ANSWERS[name], description, 1)
    np.testing.assert_allclose(rows, [[0.25, 0.75]])


@pytest.mark.parametrize("name", IMAGES)
def test_the_image_stands_where_the_api_expects_it(name: str) -> None:
    description = read_description(FOLDER / f"{name}.toml")
    body, _ = encode_request([b"file"], description.image)
    assert base64.b64decode(IMAGES[name](json.loads(body))) == b"file"


@pytest.mark.parametrize("name", ANSWERS)
def test_it_loads_once_its_key_is_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(FOLDER / f"{name}.toml")
    variables = read_description(Path(path)).variables
    variables = variables or ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
    for variable in variables:
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(BoxError, match=f"{variables[0]} is not set"):
        load_box(path)
    for variable in variables:
        monkeypatch.setenv(variable, "a-key-of-mine")
    assert load_box(path).classes == 2
