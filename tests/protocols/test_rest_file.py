"""Descriptions of REST APIs: what is wrong with one is said with file and key."""

from pathlib import Path

import pytest

from soda_tta.errors import BoxError
from soda_tta.protocols.rest_description import RestDescription
from soda_tta.protocols.rest_file import read_description

TOP = 'url = "http://host/classify"\nclasses = ["cat", "dog"]\n'
ANSWER = '[answer]\nscores = "scores"\n'


def described(folder: Path, text: str) -> RestDescription:
    path = folder / "api.toml"
    path.write_text(text)
    return read_description(path)


def test_the_smallest_description(tmp_path: Path) -> None:
    api = described(tmp_path, TOP + ANSWER)
    assert (api.method, api.image.format, api.image.send, api.image.per_request) == (
        *("POST", "png", "body"),
        1,
    )
    assert (api.answer.kind, api.answer.top, api.partial) == ("probabilities", None, False)


def test_classes_come_from_a_file_beside_it_or_are_counted(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("cat\n\ndog \nowl\n")
    url = 'url = "http://host/classify"\n'
    assert described(tmp_path, f'{url}classes = "names.txt"\n{ANSWER}').classes == (
        *("cat", "dog"),
        "owl",
    )
    assert described(tmp_path, f"{url}classes = 3\n{ANSWER}").classes == ("0", "1", "2")


WRONG = {
    "not toml": ("url = ", "api.toml is not a TOML file"),
    "no url": ("classes = 2\n" + ANSWER, "url is missing; it is a text"),
    "not an address": ('url = "host/x"\nclasses = 2\n' + ANSWER, "must begin with http://"),
    "a query": ('url = "http://h/x?key=1"\nclasses = 2\n' + ANSWER, r"move it to \[query\]"),
    "a password": ('url = "http://u:p@h/x"\nclasses = 2\n' + ANSWER, "holds a password"),
    "a variable": ('url = "http://h/${X}"\nclasses = 2\n' + ANSWER, "holds a password, a query"),
    "unknown key": ("ulr = 1\n" + TOP, "'ulr' is not a key; did you mean 'url'"),
    "unknown table": (TOP + "[reply]\n", "'reply' is not a key; the keys are: url, method"),
    "unknown inner key": (
        TOP + '[answer]\nscore = "x"\n',
        r"'score' is not a key of \[answer\]; did you mean 'scores'",
    ),
    "wrong type": (TOP + "method = 3\n" + ANSWER, "method is 3; it must be a text"),
    "not a table": ("image = 3\n" + TOP + ANSWER, "image is 3; it must be a table"),
    "a number in headers": (TOP + "[headers]\nX = 3\n" + ANSWER, "headers.X is 3"),
    "method": (TOP + 'method = "GET"\n' + ANSWER, "choose from: POST, PUT, PATCH"),
    "no scores": (TOP + "[answer]\n", r"scores of \[answer\] is missing"),
    "bad path": (TOP + '[answer]\nscores = "a..b"\n', "A path has names"),
    "too many stars": (TOP + '[answer]\nscores = "a[*].b[*]"\n', "at most one"),
    "kind": (TOP + ANSWER + 'kind = "softmax"\n', "choose from: probabilities, percent, logits"),
    "top 0": (TOP + ANSWER + "top = 0\n", "must be at least 1"),
    "top logits": (TOP + ANSWER + 'top = 1\nkind = "logits"\n', "softmax needs all classes"),
    "no classes": ('url = "http://h/x"\n' + ANSWER, "classes is missing; list the names"),
    "one class": ('url = "http://h/x"\nclasses = ["a"]\n' + ANSWER, "at least two"),
    "twice": ('url = "http://h/x"\nclasses = ["a", "b", "a"]\n' + ANSWER, "'a' more than once"),
    "no file": ('url = "http://h/x"\nclasses = "no.txt"\n' + ANSWER, "cannot be read"),
    "quality of png": (TOP + ANSWER + "[image]\nquality = 90\n", 'only with format = "jpeg"'),
    "quality": (
        TOP + ANSWER + '[image]\nformat = "jpeg"\nquality = 101\n',
        "choose 1 to 100",
    ),
    "size": (TOP + ANSWER + "[image]\nsize = [1, 2, 3]\n", r"\[height, width\]"),
    "field of a body": (TOP + ANSWER + '[image]\nfield = "x"\n', 'only with send = "multipart"'),
    "two in a body": (TOP + ANSWER + "[image]\nper_request = 2\n", "a raw body holds one image"),
    "no place": (TOP + ANSWER + '[image]\nsend = "json"\n', r"path of \[image\] is missing"),
    "one place for two": (
        TOP + '[answer]\nscores = "s[*]"\n[image]\nsend = "json"\npath = "a[0]"\nper_request = 2\n',
        r"it needs one \[\*\]",
    ),
    "one answer for two": (
        TOP + ANSWER + '[image]\nsend = "json"\npath = "a[*]"\nper_request = 2\n',
        r"one \[\*\] for the images",
    ),
    "template": (
        TOP + ANSWER + '[image]\nsend = "json"\npath = "a.b"\ntemplate = {a = 1}\n',
        "does not fit path",
    ),
    "a key": (
        TOP + '[headers]\nAuthorization = "Bearer hf_secret"\n' + ANSWER,
        r"headers.Authorization looks like a key",
    ),
    "a key in a query": (TOP + '[query]\napi_key = "12345"\n' + ANSWER, "looks like a key"),
    "own header": (TOP + '[headers]\nHost = "x"\n' + ANSWER, "is set by soda-tta itself"),
    "half of aws": (TOP + ANSWER + '[aws]\nregion = "eu-west-1"\n', "service of .aws. is missing"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BoxError, match=message) as raised:
        described(tmp_path, text)
    assert "api.toml" in str(raised.value)


def test_an_absent_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BoxError, match=r"no\.toml cannot be read: No such file"):
        read_description(tmp_path / "no.toml")


def test_comments_and_prices_do_not_make_another_model(tmp_path: Path) -> None:
    first = described(tmp_path, TOP + ANSWER)
    assert described(tmp_path, "# ours\nprice = 1\n" + TOP + ANSWER).digest() == first.digest()
    assert described(tmp_path, TOP + ANSWER + "top = 1\n").digest() != first.digest()
