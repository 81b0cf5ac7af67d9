"""Images as the bytes of PNG or JPEG files, and requests that carry them."""

from __future__ import annotations

import base64
import io
import json
import uuid

import numpy as np
from PIL import Image

from soda_tta.protocols.rest_description import ImageTransport
from soda_tta.types import Array

FAST = 1  # of PNG's levels of compression: photographs are 4 % larger than with 6, 3 times sooner


def encode_image(pixels: Array, format: str, quality: int = 95) -> bytes:
    """A file with one image.

    Parameters
    ----------
    pixels : uint8 array of shape (height, width, 3), or (height, width, 1) for grey.
    format : "png" or "jpeg".
    quality : of JPEG, 1 to 100.

    Examples
    --------
    >>> encode_image(np.zeros((8, 8, 3), np.uint8), "png")[1:4]
    b'PNG'
    """
    buffer = io.BytesIO()
    image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    options = {"compress_level": FAST} if format == "png" else {"quality": quality}
    image.save(buffer, format, **options)
    return buffer.getvalue()


def decode_image(file: bytes) -> Array:
    """The RGB pixels of an image file, uint8 of shape (height, width, 3)."""
    return np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))


def encode_request(files: list[bytes], transport: ImageTransport) -> tuple[bytes, str]:
    """The body of a request with these image files, and its content type.

    Examples
    --------
    >>> encode_request([b"..."], ImageTransport(format="jpeg"))
    (b'...', 'image/jpeg')
    """
    content_type = f"image/{transport.format}"
    if transport.send == "body":
        return files[0], content_type
    if transport.send == "json":
        assert transport.path is not None
        texts = [transport.prefix + base64.b64encode(file).decode() for file in files]
        document = transport.path.placed(transport.template, texts)
        return json.dumps(document).encode(), "application/json"
    boundary = uuid.uuid4().hex
    suffix = "jpg" if transport.format == "jpeg" else transport.format
    parts = [
        (f'name="{name}"', "text/plain", text.encode())
        for name, text in transport.form_fields.items()
    ]
    parts += [
        (f'name="{transport.form_field}"; filename="image{number}.{suffix}"', content_type, file)
        for number, file in enumerate(files)
    ]
    body = b"".join(
        f"--{boundary}\r\nContent-Disposition: form-data; {name}\r\n"
        f"Content-Type: {kind}\r\n\r\n".encode()
        + content
        + b"\r\n"
        for name, kind, content in parts
    )
    return body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"
