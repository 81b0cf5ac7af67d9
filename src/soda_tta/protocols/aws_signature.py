"""Requests signed as Amazon's services want them (Signature Version 4)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from urllib.parse import quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class AwsKey:
    """Who signs, and for which service.

    Parameters
    ----------
    region, service : such as "eu-west-1" and "rekognition".
    access_key, secret_key : the two parts of the key.
    session_token : of temporary keys; empty otherwise.
    """

    region: str
    service: str
    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)

    def sign(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        now: datetime | None = None,
    ) -> dict[str, str]:
        """The headers to send: the given ones, which are all signed, and the signature.

        Parameters
        ----------
        method, url, headers, body : the request; `url` has its query and encoding already.
        now : when it is signed; default: now. The server allows a few minutes.
        """
        moment = (now or datetime.now(timezone.utc)).strftime("%Y%m%dT%H%M%SZ")
        sent = {**headers, "X-Amz-Date": moment}
        if self.session_token:
            sent["X-Amz-Security-Token"] = self.session_token
        address = urlsplit(url)
        signed = {name.lower(): " ".join(value.split()) for name, value in sent.items()}
        signed["host"] = address.netloc
        names = ";".join(sorted(signed))
        request = "\n".join(
            [
                method,
                quote(address.path or "/", safe="/-_.~%"),
                "&".join(sorted(address.query.split("&"))),
                *(f"{name}:{signed[name]}" for name in sorted(signed)),
                "",
                names,
                hashlib.sha256(body).hexdigest(),
            ]
        )
        scope = f"{moment[:8]}/{self.region}/{self.service}/aws4_request"
        digest = hashlib.sha256(request.encode()).hexdigest()
        key = f"AWS4{self.secret_key}".encode()
        for part in (*scope.split("/"), f"{ALGORITHM}\n{moment}\n{scope}\n{digest}"):
            key = hmac.digest(key, part.encode(), "sha256")
        credential = f"Credential={self.access_key}/{scope}"
        sent["Authorization"] = (
            f"{ALGORITHM} {credential}, SignedHeaders={names}, Signature={key.hex()}"
        )
        return sent
