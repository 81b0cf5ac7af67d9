"""Addresses that are not over HTTP get an error that says what to pass."""

import pytest

from soda_tta import load_box
from soda_tta.errors import BoxError


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        ("localhost:8000", r"pass http://localhost:8000/v2/models/NAME\."),
        ("localhost:8000/", r"pass http://localhost:8000/v2/models/NAME\."),
        ("10.0.0.7:8000", r"pass http://10.0.0.7:8000/v2/models/NAME\."),
        ("gpu-1.local:8000/v2/models/cats", r"pass http://gpu-1.local:8000/v2/models/cats\."),
        ("[::1]:8000", r"pass http://\[::1\]:8000/v2/models/NAME\."),
        ("grpc://host:8001/cats", r"gRPC is not supported yet.* http://host:8000/v2/models/NAME"),
        ("grpc://host", r"gRPC is not supported yet.* http://host:8000/v2/models/NAME"),
        ("ftp://host/cats.onx", r"not an address over HTTP; pass http://host:port/v2/models/NAME"),
    ],
)
def test_the_error_names_the_address_to_pass(model: str, remedy: str) -> None:
    with pytest.raises(BoxError, match=remedy) as refused:
        load_box(model)
    assert "import" not in str(refused.value)


@pytest.mark.parametrize(
    "address", ["http://h/v2/models/m?key=s3cret", "http://h/v2/models/m#s3cret"]
)
def test_a_key_in_an_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(BoxError, match="api_key_env=") as refused:
        load_box(address)
    assert "s3cret" not in str(refused.value)
