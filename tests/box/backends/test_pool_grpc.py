"""Several servers of one model, over gRPC and over TLS."""

import socket

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.box import Ledger, Meter, OpenInferenceBox

from .grpc_server import GrpcServer


def test_a_pool_of_two_outlives_one(grpc_server, images: np.ndarray) -> None:
    with GrpcServer() as second:
        box = load_box(f"{grpc_server.url},{second.url}", batch=5)
        np.testing.assert_array_equal(box(images), load_box(grpc_server.url, batch=5)(images))
        assert second.asked
    ledger = Ledger(limit=100)
    rows = Meter(box, ledger).asking("probe")(images)
    np.testing.assert_allclose(rows, grpc_server.expected(images), atol=1e-6)
    assert ledger.queries == {"probe": 50}


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> str:
    """A name that only our own lookup can resolve."""
    monkeypatch.setenv("NO_PROXY", "pool.test")
    real = socket.getaddrinfo

    def getaddrinfo(host, *args, **options):
        return real("127.0.0.1" if host == "pool.test" else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return "pool.test"


def test_the_addresses_behind_a_name(grpc_server, named: str, images: np.ndarray) -> None:
    url = grpc_server.url.replace("127.0.0.1", named)
    box = load_box(url, replicas="dns")
    np.testing.assert_allclose(box(images), grpc_server.expected(images), atol=1e-6)
    assert box.fingerprint().startswith(url)


def test_over_tls_the_name_is_what_the_certificate_is_for(
    tls_server, monkeypatch, images: np.ndarray
) -> None:
    server, authority = tls_server
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,pool.test")
    url = server.url.replace("127.0.0.1", "pool.test")
    # the certificate is for 127.0.0.1, which is only connected to
    with pytest.raises(Exception, match="not trusted"):
        OpenInferenceBox(url, certificate_authority=authority, connect_to="127.0.0.1")
    box = OpenInferenceBox(server.url, certificate_authority=authority, connect_to="127.0.0.1")
    np.testing.assert_allclose(box(images), server.expected(images), atol=1e-6)
