"""Addresses that cannot be those of a model get an error that says what to pass."""

import pytest

from soda_tta import load_box
from soda_tta.box.addresses import GrpcAddress
from soda_tta.errors import BoxError


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        ("localhost:8000", r"pass http://localhost:8000/v2/models/NAME\."),
        ("localhost:8000/", r"pass http://localhost:8000/v2/models/NAME\."),
        ("10.0.0.7:8000", r"pass http://10.0.0.7:8000/v2/models/NAME\."),
        ("gpu-1.local:8000/v2/models/cats", r"pass http://gpu-1.local:8000/v2/models/cats\."),
        ("[::1]:8000", r"pass http://\[::1\]:8000/v2/models/NAME\."),
        ("grpc://host:8001", r"names no model; pass grpc://host:8001/NAME\."),
        ("grpc://host:8001/", r"names no model; pass grpc://host:8001/NAME\."),
        ("grpc://host:8001/cats/2", r"names no model; pass grpc://host:8001/NAME\."),
        ("grpc://host", r"names no model; pass grpc://host:8001/NAME\."),
        ("grpcs://[::1]", r"names no model; pass grpcs://\[::1\]:443/NAME\."),
        ("grpc://host/cats", r"names no port; pass grpc://host:8001/cats .*MLServer"),
        ("grpc:///cats", r"names no host; pass grpc\(s\)://host:port/NAME"),
        ("grpc://host:99999/cats", r"is not a valid address: .*; pass grpc\(s\)://host:port/NAME"),
        ("grpc://host:port/cats", r"is not a valid address"),
        ("grpc://[::1/cats", r"is not a valid address"),
        ("ftp://host/cats.onx", r"not an address over HTTP or gRPC; pass http://host:port/v2/mod"),
    ],
)
def test_the_error_names_the_address_to_pass(model: str, remedy: str) -> None:
    with pytest.raises(BoxError, match=remedy) as refused:
        load_box(model)
    assert "import" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "http://h/v2/models/m?key=s3cret",
        "http://h/v2/models/m#s3cret",
        "grpc://h:8001/m?key=s3cret",
        "grpc://user:s3cret@h:8001/m",
        "GRPCS://s3cret@h/m",
    ],
)
def test_a_key_in_an_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(BoxError, match="api_key_env=") as refused:
        load_box(address)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "place", "address"),
    [
        ("grpc://host:8001/cats", "host:8001", "grpc://host:8001/cats"),
        ("GRPC://Host:8001/v2/models/cats/", "host:8001", "grpc://host:8001/cats"),
        ("grpcs://host/cats/versions/3", "host:443", "grpcs://host:443/cats/versions/3"),
        ("grpc://[::1]:8001/my%20cats", "[::1]:8001", "grpc://[::1]:8001/my%20cats"),
    ],
)
def test_an_address_over_grpc_has_one_form(text: str, place: str, address: str) -> None:
    read = GrpcAddress.read(text)
    assert (read.place, str(read)) == (place, address)
    assert read == GrpcAddress.read(address)
