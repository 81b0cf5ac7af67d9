"""`soda-tta describe`: descriptions of REST APIs to start from."""

import json
from pathlib import Path

from soda_tta.protocols.rest_file import read_description

from .conftest import Soda


def test_the_list_names_every_api(soda: Soda) -> None:
    assert "hugging-face" in soda("describe").out
    rows = json.loads(soda("describe", "--json").out)
    assert {"aws-rekognition", "vertex-ai"} <= {row["name"] for row in rows}


def test_a_description_is_printed_as_a_file(soda: Soda, place: Path) -> None:
    text = soda("describe", "azure-custom-vision").out
    (place / "api.toml").write_text(text)
    assert read_description(place / "api.toml").variables == ["CUSTOM_VISION_KEY"]
    facts = json.loads(soda("describe", "azure-custom-vision", "--json").out)
    assert facts["toml"].strip() == text.strip()


def test_an_unknown_api_is_a_clear_error(soda: Soda) -> None:
    done = soda("describe", "huggingface")
    assert done.code == 2 and "did you mean 'hugging-face'" in done.err
