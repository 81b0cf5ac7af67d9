"""What a client shows to a server, and which servers it trusts: API keys and certificates."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from soda_tta.errors import BoxError
from soda_tta.masking import keep_secret


def key_header(variable: str | None, header: str) -> dict[str, str]:
    """The header with the API key in this environment variable; the key is never shown."""
    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key:
        raise BoxError(f"the environment variable {variable} is not set; put the API key there.")
    if not (key.isascii() and key.isprintable()):
        raise BoxError(
            f"the environment variable {variable} contains characters "
            "that a header cannot carry; check the API key."
        )
    keep_secret(key)  # a server may echo it
    return {header: f"Bearer {key}" if header.lower() == "authorization" else key}


def tls_context(certificate_authority: str | Path | None) -> ssl.SSLContext:
    """The authorities to trust: that of a PEM file, or those of the system."""
    try:
        return ssl.create_default_context(cafile=certificate_authority)
    except OSError as error:
        raise BoxError(
            f"{certificate_authority} cannot be read as a certificate file: {error}"
        ) from error


def root_certificates(certificate_authority: str | Path | None) -> bytes | None:
    """The same authorities as the text of a PEM file; None if the system has none to read."""
    context = tls_context(certificate_authority)
    if certificate_authority is not None:
        return Path(certificate_authority).read_bytes()
    system = context.get_ca_certs(binary_form=True)
    return "".join(map(ssl.DER_cert_to_PEM_cert, system)).encode() or None
