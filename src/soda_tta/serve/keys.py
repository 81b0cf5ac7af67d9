"""Who may do what: a key for clients, another one for those who control the proxy."""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from soda_tta.errors import SodaError
from soda_tta.masking import keep_secret

CLIENT_VARIABLE = "SODA_TTA_CLIENT_KEY"
ADMIN_VARIABLE = "SODA_TTA_ADMIN_KEY"
SHORTEST = 16  # characters of a key: a shorter one can be guessed
BEARER = "bearer "
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Keys:
    """The keys of a proxy; None: none is asked for.

    Examples
    --------
    >>> keys = Keys(client="a" * 16)
    >>> keys.is_client({"authorization": "Bearer " + "a" * 16}), keys.is_client({})
    (True, False)
    """

    client: str | None = None
    admin: str | None = None

    def is_client(self, headers: Mapping[str, str]) -> bool:
        """Whether these headers may ask the model."""
        return self.client is None or fits(headers, self.client) or self.is_admin(headers)

    def is_admin(self, headers: Mapping[str, str]) -> bool:
        """Whether these headers hold the admin key; False if there is none."""
        return self.admin is not None and fits(headers, self.admin)


def fits(headers: Mapping[str, str], key: str) -> bool:
    """Whether a request shows this key: as a bearer token, or in X-API-Key.

    The comparison takes as long for a key that is almost right.
    """
    token = headers.get("authorization", "")
    shown = token[len(BEARER) :] if token[: len(BEARER)].lower() == BEARER else ""
    shown = shown or headers.get("x-api-key", "")
    return hmac.compare_digest(shown.strip().encode(errors="replace"), key.encode())


def read_key(file: str | Path | None, variable: str) -> str | None:
    """A key from a file, or from an environment variable; None if there is neither.

    Parameters
    ----------
    file : str, Path or None
        Its content is the key.
    variable : str
        The environment variable.
    """
    if file is not None:
        try:
            key = Path(file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SodaError(f"the key file {file} cannot be read: {error}.") from error
        source = f"the key file {file}"
    else:
        key = os.environ.get(variable, "").strip()
        source = f"the environment variable {variable}"
        if not key:
            return None
    keep_secret(key)
    if len(key) < SHORTEST or not (key.isascii() and key.isprintable()) or " " in key:
        raise SodaError(
            f"{source} holds no valid key: use at least {SHORTEST} printable ASCII characters "
            "without spaces, for example from 'openssl rand -hex 32'."
        )
    return key


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return host in LOOPBACK
