"""What the boxes of the Open Inference Protocol share, whatever carries their messages."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from soda_tta.box.addresses import replica_addresses
from soda_tta.box.backends.pool import open_replicas
from soda_tta.box.backends.remote import RemoteBackend
from soda_tta.box.box import Box
from soda_tta.box.input import declared_by_shape, input_from_shape
from soda_tta.box.top_classes import refuse_top_classes
from soda_tta.box.wrappers.limited import Limiter
from soda_tta.box.wrappers.pooled import Pooled
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.foreign_text import quoted
from soda_tta.masking import masked
from soda_tta.protocols.open_inference import (
    DATATYPES,
    ModelMetadata,
    Response,
    TensorMetadata,
)
from soda_tta.types import Array

SENT = ("FP32", "FP16", "UINT8")  # the datatypes of images this package sends
SCORES = ("FP16", "FP32", "FP64")  # the datatypes of class scores it reads
QUESTION = "does the server speak the Open Inference Protocol?"
CHECK_KEY = "put the key into an environment variable and name it (api_key_env='VARIABLE')."
CHECK_NAME = "check the name of the model, and that it is ready."
DESCRIPTION_BYTES = 2**22  # of the description of a model or server, at most
BODY_BYTES = 2**20  # of a response without its values
VALUE_BYTES = 64  # of one value: JSON needs about 25
MOST_BYTES = 2**30  # of a response, whatever the model declares
UNDECLARED_CLASSES = 2**16  # assumed where the model does not declare their number


class ServedBox(RemoteBackend):
    """A model on a server. Names, shapes and types come from its metadata.

    A subclass sets `url`, calls `read_metadata` in its constructor, and sends each request.
    """

    url: str
    echoes = False  # whether the server returns the id of a request

    @classmethod
    @abstractmethod
    def normal_address(cls, url: str) -> str:
        """The address as it is written to files; a BoxError if it cannot be one."""

    @classmethod
    def options(cls) -> set[str]:
        return super().options() | {"replicas", "hedge"}

    @classmethod
    def connect(cls, model: Any, options: dict[str, Any], limiter: Limiter) -> Box:
        """One server, or the pool of several that are separated by commas or share a name."""
        options = dict(options)
        replicas = options.pop("replicas", None)
        hedge = options.pop("hedge", 0.0)
        if replicas not in (None, "dns"):
            raise BoxError(f"replicas={replicas!r} is not valid; use 'dns', or list the addresses.")
        urls = replica_addresses(model)
        if replicas is None and len(urls) == 1:
            if hedge:
                raise BoxError("hedge needs several servers: list their addresses.")
            return super().connect(model, options, limiter)
        addresses = [cls.normal_address(url) for url in urls]

        def open(url: str, ip: str | None) -> Box:
            place = {} if ip is None else {"connect_to": ip}
            return super(ServedBox, cls).connect(url, {**options, **place}, limiter)

        opened = open_replicas(addresses, open, dns=replicas == "dns")
        assert isinstance(opened.box, ServedBox)
        identity = opened.box.fingerprint_at(addresses[0])  # servers come and go, the first stands
        return Pooled(opened, identity=identity, hedge=hedge, limiter=limiter)

    def read_metadata(
        self, metadata: ModelMetadata, output: str | None, batch: int, facts: dict[str, Any]
    ) -> TensorMetadata:
        """Take over what the model declares; returns its input."""
        self.metadata = metadata
        image = self._image_input(metadata)
        dtype = DATATYPES[image.datatype]
        self.version = metadata.versions[-1] if metadata.versions else "?"
        self.input_name = image.name
        self.input = input_from_shape(image.shape, dtype, **self.state_output(facts))
        self.declared = declared_by_shape(image.shape, dtype)
        self.fixed_batch = isinstance(image.shape[0], int) and image.shape[0] > 0
        self.batch = image.shape[0] if self.fixed_batch else batch
        self.output_name = output or self._only_output(metadata)
        self.values = sum(values_per_image(each) for each in metadata.outputs)
        refuse_top_classes(self.url, metadata.outputs, self.output_name)
        return image

    def _image_input(self, metadata: ModelMetadata) -> TensorMetadata:
        """The one input of the model, of a type that can be sent."""
        if len(metadata.inputs) != 1:
            raise BoxError(
                f"{self.url} has {len(metadata.inputs)} inputs; an image classifier has one."
            )
        if metadata.inputs[0].datatype not in SENT:
            raise BoxError(
                f"{self.url} takes {metadata.inputs[0].datatype}; "
                f"this package sends {', '.join(SENT)}."
            )
        return metadata.inputs[0]

    def _only_output(self, metadata: ModelMetadata) -> str:
        names = [output.name for output in metadata.outputs]
        if len(names) != 1:
            raise BoxError(
                f"{self.url} has the outputs {quoted(', '.join(names)) or '(none)'}; "
                "choose the one with the class scores (output='NAME')."
            )
        return names[0]

    def largest_response(self, images: int) -> int:
        """Bytes of the largest response that the declared shapes explain."""
        return min(MOST_BYTES, BODY_BYTES + VALUE_BYTES * self.values * images)

    def scores(self, response: Response, id: str) -> Array:
        """The class scores in the response to the request of this id."""
        self._check_id(id, response.id)
        scores = response.outputs[0]
        if scores.datatype not in SCORES:
            raise BoxError(
                f"{self.url} returned {scores.datatype} values in {scores.name!r}; "
                f"class scores are {', '.join(SCORES)}. Choose another output (output='NAME')."
            )
        return np.asarray(scores.array, np.float32)

    def _check_id(self, sent: str, received: str | None) -> None:
        """Refuse the response to another request; a server need not return ids."""
        if received == sent:
            self.echoes = True
        elif received or self.echoes:
            raise BoxUnavailable(
                f"{self.url} answered with the id of another request, so the response may be that "
                "to other images. It was dropped."
            )

    def fingerprint(self) -> str:
        return self.fingerprint_at(self.url)

    def fingerprint_at(self, url: str) -> str:
        """The fingerprint of the same model at another address."""
        return masked(f"{url} version {self.version} output {self.output_name}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"


def values_per_image(output: TensorMetadata) -> int:
    """How many values of an output belong to one image, as far as the model declares it."""
    extents = output.shape[1:]
    declared = all(isinstance(extent, int) and extent > 0 for extent in extents)
    return math.prod(extents) if extents and declared else UNDECLARED_CLASSES
