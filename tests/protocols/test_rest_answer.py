"""Answers of REST APIs: every form that is read, and what is said about the others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soda_tta.protocols.rest_answer import AnswerError, read_answer
from soda_tta.protocols.rest_file import read_description


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Reads the answer to some images, as keys under [answer] describe it; classes are cat, dog,
    owl.
    """

    def reading(document: Any, keys: str, count: int = 1, image: str = "") -> Any:
        path = tmp_path / "api.toml"
        names = 'classes = ["cat", "dog", "owl"]'
        path.write_text(f'url = "http://h/x"\n{names}\n[answer]\n{keys}\n[image]\n{image}')
        return read_answer(document, read_description(path), count).round(6).tolist()

    return reading


LISTED = [{"label": "owl", "score": 0.5}, {"label": "cat", "score": 0.3}]
PATHS = 'labels = "[*].label"\nscores = "[*].score"\n'
SEVERAL = 'send = "json"\npath = "i[*]"\nper_request = 4'

FORMS = {
    "pairs": ([*LISTED, {"label": "dog", "score": 0.2}], PATHS, [0.3, 0.2, 0.5]),
    "top classes": (LISTED, PATHS + "top = 2", [0.3, 0, 0.5]),
    "two lists": (
        {"p": [{"names": ["dog", "owl", "cat"], "values": [0.7, 0.2, 0.1]}]},
        'labels = "p[0].names"\nscores = "p[0].values[*]"',
        [0.1, 0.7, 0.2],
    ),
    "in order": ({"s": [0.1, 0.2, 0.7]}, 'scores = "s"', [0.1, 0.2, 0.7]),
    "an object": ({"dog": 1, "cat": 0, "owl": 0}, 'scores = "$"', [0, 1, 0]),
    "one pair": ({"name": "dog", "p": 0.9}, 'labels = "name"\nscores = "p"\ntop = 1', [0, 0.9, 0]),
    "percent": ({"s": [10, 20, 70]}, 'scores = "s"\nkind = "percent"', [0.1, 0.2, 0.7]),
    "logits": ({"s": [-1, 0, 5]}, 'scores = "s"\nkind = "logits"', [-1, 0, 5]),
    # odds 1, 1 and 2
    "independent": (
        {"s": [0.5, 0.5, 2 / 3]},
        'scores = "s"\nkind = "independent"',
        [0.25, 0.25, 0.5],
    ),
    "independent percent": (
        {"cat": 50, "owl": 75},
        'scores = "$"\nkind = "independent percent"\ntop = 2',
        [0.25, 0, 0.75],
    ),
    "no error": ({"s": [0, 0, 1], "error": None}, 'scores = "s"\nerror = "error"', [0, 0, 1]),
}


@pytest.mark.parametrize(("document", "keys", "row"), FORMS.values(), ids=FORMS)
def test_an_answer_is_read(read: Any, document: Any, keys: str, row: list[float]) -> None:
    assert read(document, keys) == [row]


def test_several_images_have_several_rows(read: Any) -> None:
    document = {"p": [LISTED, LISTED[:1]]}
    keys = 'labels = "p[*][*].label"\nscores = "p[*][*].score"\ntop = 2'
    assert read(document, keys, 2, SEVERAL) == [[0.3, 0, 0.5], [0, 0, 0.5]]
    with pytest.raises(AnswerError, match="scores for 2 images; 3 were sent"):
        read(document, keys, 3, SEVERAL)


def test_scores_that_are_certain_stay_finite(read: Any) -> None:
    (row,) = read({"s": [1.0, 0.0, 0.0]}, 'scores = "s"\nkind = "independent"')
    assert row[0] > 0.999 and np.isfinite(row).all()


WRONG = {
    "an error inside": (
        {"error": {"message": "quota"}},
        'scores = "s"\nerror = "error.message"',
        r"holds an error \(error.message\): quota",
    ),
    "another form": (
        {"message": "model is loading"},
        'scores = "s"',
        r"no 's' at the top .*\(error = \.\.\.\). The answer: .*model is loading",
    ),
    "an unknown class": (
        [{"label": "oowl", "score": 1}],
        PATHS + "top = 1",
        "'oowl', which is not in classes .*'owl'",
    ),
    "nothing": ([], PATHS + "top = 1", "no scores for an image; lower the threshold"),
    "texts": ({"s": ["high", 0, 0]}, 'scores = "s"', "finds a text .high. where a number"),
    "null": ({"s": [None, 0, 0]}, 'scores = "s"', "finds null"),
    "true": ({"s": [True, 0, 0]}, 'scores = "s"', "finds true or false"),
    "too few": ({"s": [0.5, 0.5]}, 'scores = "s"', "2 scores, but classes has 3"),
    "lengths": (
        {"l": ["cat"], "s": [0.5, 0.5]},
        'labels = "l"\nscores = "s"',
        "1 labels and 2 scores",
    ),
    "twice": ({"l": ["cat", "cat"], "s": [1, 0]}, 'labels = "l"\nscores = "s"', "more than once"),
    "top classes": (LISTED, PATHS, "2 of 3 classes; .* set top = 2"),
    "percent": ({"s": [10, 20, 70]}, 'scores = "s"', 'sum to 100, not 1; set kind = "percent"'),
    "not percent": (
        {"s": [0.1, 0.2, 0.7]},
        'scores = "s"\nkind = "percent"',
        'sum to 1, not 100; set kind = "probabilities"',
    ),
    "logits": ({"s": [-1, 0, 5]}, 'scores = "s"', r'negative values \(-1\).*kind = "logits"'),
    "independent": ({"s": [0.9, 0.8, 0]}, 'scores = "s"', 'sum to 1.7, .*kind = "independent"'),
    "both": (
        {"s": [90, 80, 0]},
        'scores = "s"\nkind = "percent"',
        'sum to 170, .*kind = "independent percent"',
    ),
    "rounded": ({"s": [0.5, 0.3, 0.1]}, 'scores = "s"', "sum to 0.9, not 1; set top = 2"),
    "not independent": (
        {"s": [90, 80, 0]},
        'scores = "s"\nkind = "independent"',
        'has 90. Set kind = "independent percent"',
    ),
}


@pytest.mark.parametrize(("document", "keys", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said(read: Any, document: Any, keys: str, message: str) -> None:
    with pytest.raises(AnswerError, match=message):
        read(document, keys)
