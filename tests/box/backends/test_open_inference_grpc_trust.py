"""Over gRPC: API keys reach only the server, and certificates are checked."""

from pathlib import Path

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.box.backends.credentials import root_certificates
from soda_tta.errors import BoxError, BoxUnavailable


@pytest.mark.parametrize(
    ("header", "sent"),
    [(None, ("authorization", "Bearer s3cret-key")), ("X-API-Key", ("x-api-key", "s3cret-key"))],
)
def test_the_key_is_sent_as_metadata(grpc_server, images, monkeypatch, header, sent) -> None:
    grpc_server.key = dict([sent])
    monkeypatch.setenv("MODEL_KEY", "s3cret-key")
    box = load_box(grpc_server.url, api_key_env="MODEL_KEY", api_key_header=header)
    np.testing.assert_allclose(box(images), grpc_server.expected(images), atol=1e-6)
    assert "s3cret" not in repr(box) + box.fingerprint() + str(box.card())
    assert grpc_server.headers[-1]["user-agent"].startswith("soda-tta/")


def test_without_a_key_the_error_says_where_to_put_it(grpc_server) -> None:
    grpc_server.key = {"authorization": "Bearer s3cret"}
    with pytest.raises(
        BoxError, match=r"answered UNAUTHENTICATED: unauthorized; put the key .*api_key_env="
    ):
        load_box(grpc_server.url)


@pytest.mark.parametrize("value", [None, "", "s3cret\nx-admin: 1"])
def test_a_key_that_cannot_be_sent_is_refused_before_any_call(grpc_server, monkeypatch, value):
    monkeypatch.delenv("MODEL_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MODEL_KEY", value)
    with pytest.raises(BoxError, match="the environment variable MODEL_KEY") as caught:
        load_box(grpc_server.url, api_key_env="MODEL_KEY")
    assert "s3cret" not in str(caught.value) and grpc_server.headers == []


@pytest.mark.parametrize("header", ["X API Key", "grpc-key", "key-bin", "schlüssel"])
def test_a_header_that_grpc_cannot_carry_is_refused(grpc_server, monkeypatch, header) -> None:
    monkeypatch.setenv("MODEL_KEY", "s3cret-key")
    with pytest.raises(BoxError, match=r"not a valid name of a header.*api_key_header="):
        load_box(grpc_server.url, api_key_env="MODEL_KEY", api_key_header=header)


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "INTERNAL", "UNAVAILABLE"])
def test_an_echoed_key_is_hidden(grpc_server, failing, images, monkeypatch, code: str) -> None:
    monkeypatch.setenv("MODEL_KEY", "s3cret-key")
    grpc_server.faults = [failing(code, "not allowed: Bearer s3cret-key \x1b[2J")]
    with pytest.raises(BoxError, match=r"not allowed: Bearer \.\.\. \\x1b\[2J") as caught:
        load_box(grpc_server.url, api_key_env="MODEL_KEY", workers=1, retries=0)(images)
    error: BaseException | None = caught.value
    while error is not None:  # nor in what a traceback shows
        assert "s3cret" not in str(error)
        error = error.__cause__ or error.__context__


def test_tls_works_with_the_specified_authority(tls_grpc_server, images: np.ndarray) -> None:
    server, authority = tls_grpc_server
    box = load_box(server.url, certificate_authority=authority)
    np.testing.assert_allclose(box(images), server.expected(images), atol=1e-6)


def test_tls_with_an_unknown_authority_is_refused_with_the_remedy(tls_grpc_server) -> None:
    server, _ = tls_grpc_server
    with pytest.raises(
        BoxError, match=r"is not trusted: .*CERTIFICATE_VERIFY_FAILED.*certificate_authority="
    ) as caught:
        load_box(server.url)
    assert not isinstance(caught.value, BoxUnavailable) and server.headers == []


def test_a_certificate_for_another_host_is_refused(tls_grpc_server) -> None:
    server, authority = tls_grpc_server
    with pytest.raises(BoxError, match=r"is not trusted: .*(?i:hostname)"):
        load_box(server.url.replace("127.0.0.1", "localhost"), certificate_authority=authority)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_an_invalid_certificate_file_is_a_clear_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "authority.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BoxError, match=r"authority.pem cannot be read as a certificate file"):
        load_box("grpcs://127.0.0.1:1/tiny", certificate_authority=path)


def test_without_tls_a_tls_port_is_not_reached(tls_grpc_server) -> None:
    server, _ = tls_grpc_server
    with pytest.raises(BoxUnavailable, match=r"cannot be reached.* grpc:// or grpcs://"):
        load_box(server.url.replace("grpcs", "grpc"), timeout=0.5, retries=0)


def test_with_tls_a_plain_port_is_named_as_such(grpc_server) -> None:
    with pytest.raises(BoxError, match=r"not with this kind of encryption.*grpc:// or grpcs://"):
        load_box(grpc_server.url.replace("grpc", "grpcs"))


def test_the_authorities_of_the_system_are_those_of_http() -> None:
    roots = root_certificates(None)
    assert roots is None or roots.startswith(b"-----BEGIN CERTIFICATE-----")
