"""Read the description of a REST API.

It is a small TOML file: where the API is, how an image travels, where labels and scores stand in
the answer, and which classes there are. `docs/how-to/rest.md` explains every key.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from soda_tta.errors import BoxError
from soda_tta.protocols.environment import VARIABLE
from soda_tta.protocols.json_path import GRAMMAR, JsonPath
from soda_tta.protocols.rest_description import AnswerPlaces, ImageTransport, RestDescription
from soda_tta.protocols.toml_tables import TomlTable, read_toml

KEYS = ("url", "method", "classes", "price", "headers", "query", "image", "answer", "aws")
IMAGE_KEYS = (
    *("format", "quality", "size", "per_request", "send"),
    *("field", "fields", "path", "prefix", "template"),
)
ANSWER_KEYS = ("labels", "scores", "kind", "top", "error")
AWS_KEYS = ("region", "service")

METHODS = ("POST", "PUT", "PATCH")
FORMATS = ("png", "jpeg")
SENDS = ("body", "multipart", "json")  # how an image travels
KINDS = ("probabilities", "percent", "logits", "independent", "independent percent")
ONLY_WITH = {"field": "multipart", "fields": "multipart"} | dict.fromkeys(
    ("path", "prefix", "template"), "json"
)
OWN_HEADERS = ("host", "content-length", "transfer-encoding", "accept-encoding")
# A key that is typed into the file would be copied, mailed and committed with it.
SECRET = re.compile(r"authorization|cookie|secret|token|password|(\b|[-_])key\b|apikey", re.I)


def read_description(path: Path) -> RestDescription:
    """Read a description; BoxError, with file and key, if anything in it is not valid."""
    top = TomlTable(str(path), read_toml(path, BoxError), KEYS, error=BoxError)
    image = _image(_table(top, "image", IMAGE_KEYS))
    classes = _classes(top, path.parent)
    answer = _answer(_table(top, "answer", ANSWER_KEYS), image.per_request, len(classes))
    price = top.values.get("price")
    description = RestDescription(
        file=str(path),
        url=_url(top),
        method=top.choice("method", METHODS, "POST"),
        headers=_texts_without_keys(top, "headers"),
        query=_texts_without_keys(top, "query"),
        image=image,
        answer=answer,
        classes=classes,
        price=None if price is None else str(price),
        aws=_aws(top),
    )
    for name in description.headers:
        if name.lower() in OWN_HEADERS:
            raise top.refuse(f"headers.{name}", "is set by soda-tta itself; leave it out.")
        if image.send == "multipart" and name.lower() == "content-type":
            raise top.refuse(f"headers.{name}", "is set by soda-tta in a multipart request.")
    return description


def _table(top: TomlTable, name: str, known: tuple[str, ...]) -> TomlTable:
    return TomlTable(top.file, top.get(name, dict, {}), known, name, BoxError)


def _url(top: TomlTable) -> str:
    url = top.get("url", str)
    if not url.startswith(("http://", "https://")):
        raise top.refuse("url", f"is {url!r}; it must begin with http:// or https://.")
    if VARIABLE.search(url) or "?" in url or "#" in url or "@" in url.split("/")[2]:
        raise top.refuse(
            "url",
            "holds a password, a query (?...) or a ${VARIABLE}, but addresses are written to "
            "files; move it to [query] or [headers].",
        )
    return url


def _texts_without_keys(top: TomlTable, key: str) -> dict[str, str]:
    """Headers or query parameters; those that hold a key refer to the environment."""
    texts = top.texts(key)
    for name, value in texts.items():
        if SECRET.search(name) and not VARIABLE.search(value):
            raise top.refuse(
                f"{key}.{name}",
                "looks like a key, which must not stand in a file; put it into an environment "
                'variable and refer to it as "${VARIABLE}".',
            )
    return texts


def _image(table: TomlTable) -> ImageTransport:
    send = table.choice("send", SENDS, "body")
    for key, wanted in ONLY_WITH.items():
        if key in table.values and send != wanted:
            raise table.refuse(key, f'has an effect only with send = "{wanted}".')
    image = ImageTransport(
        format=table.choice("format", FORMATS, "png"),
        quality=table.at_least_one("quality", 95),
        size=_size(table),
        per_request=table.at_least_one("per_request", 1),
        send=send,
        form_field=table.get("field", str, "image"),
        form_fields=table.texts("fields"),
        path=_path(table, "path") if send == "json" else None,
        prefix=table.get("prefix", str, ""),
        template=table.get("template", dict, {}),
    )
    if "quality" in table.values and image.format != "jpeg":
        raise table.refuse("quality", 'has an effect only with format = "jpeg".')
    if image.quality > 100:
        raise table.refuse("quality", f"is {image.quality}; choose 1 to 100.")
    for name in (image.form_field, *image.form_fields):
        if not name.isprintable() or '"' in name:
            raise table.refuse("field", f"is {name!r}; a form field has no quotes or controls.")
    _check_places(table, image)
    return image


def _check_places(table: TomlTable, image: ImageTransport) -> None:
    """Whether several images find a place in one request, and the template fits the path."""
    if image.send == "body" and image.per_request > 1:
        raise table.refuse("per_request", "is more than 1, but a raw body holds one image.")
    if image.path is None:
        return
    wanted = 1 if image.per_request > 1 else 0
    if not wanted <= image.path.stars <= 1:
        raise table.refuse("path", f"is {image.path.text!r}; it needs one [*], for the images.")
    try:
        image.path.placed(image.template, [""])
        json.dumps(image.template)
    except (ValueError, TypeError) as error:
        raise table.refuse("template", f"does not fit path: {error}.") from error


def _size(table: TomlTable) -> tuple[int, int] | None:
    """Height and width, from one number or two."""
    value = table.values.get("size")
    if value is None:
        return None
    sides = value if isinstance(value, list) else [value, value]
    valid = len(sides) == 2 and all(type(side) is int and side > 0 for side in sides)
    if not valid:
        raise table.refuse("size", f"is {value!r}; write 224, or [height, width] in pixels.")
    return sides[0], sides[1]


def _path(table: TomlTable, key: str, default: Any = ...) -> Any:
    if default is not ... and key not in table.values:
        return default
    try:
        return JsonPath.parse(table.get(key, str))
    except ValueError as error:
        raise table.refuse(key, f"is not valid: {error}. A path has {GRAMMAR}.") from error


def _answer(table: TomlTable, per_request: int, classes: int) -> AnswerPlaces:
    answer = AnswerPlaces(
        scores=_path(table, "scores"),
        labels=_path(table, "labels", None),
        kind=table.choice("kind", KINDS, "probabilities"),
        top=table.at_least_one("top", None),
        error=_path(table, "error", None),
    )
    images = 1 if per_request > 1 else 0
    for key, path in (("scores", answer.scores), ("labels", answer.labels)):
        if path is not None and not images <= path.stars <= images + 1:
            needed = "one [*] for the images and at most one for the classes"
            if not images:
                needed = "at most one [*], for the classes (per_request is 1)"
            raise table.refuse(key, f"is {path.text!r}; it needs {needed}.")
    if answer.kind == "logits" and (answer.top or classes) < classes:
        raise table.refuse("top", "does not go with logits: a softmax needs all classes.")
    return answer


def _classes(top: TomlTable, folder: Path) -> tuple[str, ...]:
    """The class list: names, a file of names, or a number of classes named 0, 1, ..."""
    value = top.values.get("classes")
    if isinstance(value, str):
        try:
            lines = (folder / value).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise top.refuse("classes", f"names a file that cannot be read: {error}.") from error
        names = [line.strip() for line in lines if line.strip()]
    elif type(value) is int:
        names = [str(number) for number in range(value)]
    elif isinstance(value, list) and all(isinstance(name, str) for name in value):
        names = value
    else:
        state = "is missing" if value is None else f"is {value!r}"
        raise top.refuse(
            "classes",
            f"{state}; list the names of all classes, name a file with one per line, or write "
            "their number if labels are indices.",
        )
    if len(names) < 2:
        raise top.refuse("classes", f"has {len(names)}; a classifier has at least two.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise top.refuse("classes", f"has {twice[0]!r} more than once; names must be unique.")
    return tuple(names)


def _aws(top: TomlTable) -> tuple[str, str] | None:
    if "aws" not in top.values:
        return None
    table = _table(top, "aws", AWS_KEYS)
    return table.get("region", str), table.get("service", str)
