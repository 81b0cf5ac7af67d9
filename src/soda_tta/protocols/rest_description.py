"""The description of a REST API that takes image files and returns labels with scores."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from soda_tta.protocols.environment import VARIABLE
from soda_tta.protocols.json_path import JsonPath


@dataclass(frozen=True, kw_only=True)
class ImageTransport:
    """How an image travels.

    Parameters
    ----------
    format, quality : "png" or "jpeg"; the JPEG quality from 1 to 100.
    size : height and width that images are resized to; None sends them as they are.
    per_request : images per request, at most.
    send : "body", "multipart" (as `form_field`, beside the texts `form_fields`) or "json" (in
        base64, after `prefix`, at `path` of `template`).
    """

    format: str = "png"
    quality: int = 95
    size: tuple[int, int] | None = None
    per_request: int = 1
    send: str = "body"
    form_field: str = "image"
    form_fields: dict[str, str] = field(default_factory=dict)
    path: JsonPath | None = None
    prefix: str = ""
    template: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AnswerPlaces:
    """Where labels and scores stand in an answer, and what the scores are.

    Parameters
    ----------
    scores : their place.
    labels : theirs; None if scores come in the order of the classes or as an object by label.
    kind : "probabilities", "percent", "logits", "independent" or "independent percent".
    top : the most classes that an answer has; None: all.
    error : a place that an answer has only if something went wrong.
    """

    scores: JsonPath
    labels: JsonPath | None = None
    kind: str = "probabilities"
    top: int | None = None
    error: JsonPath | None = None


@dataclass(frozen=True, kw_only=True)
class RestDescription:
    """A description that was read and checked; `${VARIABLES}` are still unread.

    Parameters
    ----------
    file : where it comes from.
    url, method, headers, query : the request.
    image : how an image travels.
    answer : where labels and scores stand.
    classes : the names of all classes, in the order of the columns.
    price : as the user wrote it, such as "1.5 per 1000 calls".
    aws : region and service, if requests are signed as Amazon's services want them.
    """

    file: str
    url: str
    method: str
    headers: dict[str, str]
    query: dict[str, str]
    image: ImageTransport
    answer: AnswerPlaces
    classes: tuple[str, ...]
    price: str | None = None
    aws: tuple[str, str] | None = None

    @property
    def partial(self) -> bool:
        """Whether an answer may lack classes."""
        return self.answer.top is not None and self.answer.top < len(self.classes)

    @property
    def variables(self) -> list[str]:
        """The environment variables that it refers to."""
        texts = [*self.headers.values(), *self.query.values()]
        return sorted({name for text in texts for name in VARIABLE.findall(text)})

    def digest(self) -> str:
        """Differs between two descriptions that may get different answers."""
        facts = {**asdict(self), "file": None, "price": None}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]
