"""API keys reach only the server, and certificates are checked."""

from pathlib import Path

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.errors import BoxError, BoxUnavailable


def test_the_key_is_sent_as_a_bearer_token(server, images: np.ndarray, monkeypatch) -> None:
    server.key = {"Authorization": "Bearer s3cret"}
    monkeypatch.setenv("MODEL_KEY", "s3cret")
    box = load_box(server.url, api_key_env="MODEL_KEY")
    np.testing.assert_allclose(box(images), server.expected(images), atol=1e-6)
    assert "s3cret" not in repr(box) + box.fingerprint()


def test_the_key_is_sent_in_a_header_of_its_own(server, images: np.ndarray, monkeypatch) -> None:
    server.key = {"X-API-Key": "s3cret"}
    monkeypatch.setenv("MODEL_KEY", "s3cret")
    load_box(server.url, api_key_env="MODEL_KEY", api_key_header="X-API-Key")(images)
    assert "authorization" not in server.headers[-1]


def test_without_a_key_the_error_says_where_to_put_it(server) -> None:
    server.key = {"Authorization": "Bearer s3cret"}
    with pytest.raises(
        BoxError,
        match=r"answered 401: unauthorized; put the key into an .*variable .*api_key_env=",
    ):
        load_box(server.url)


@pytest.mark.parametrize("value", [None, "", " \n"])
def test_a_variable_that_is_not_set_is_named(server, monkeypatch, value: str | None) -> None:
    monkeypatch.delenv("MODEL_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MODEL_KEY", value)
    with pytest.raises(BoxError, match="the environment variable MODEL_KEY is not set"):
        load_box(server.url, api_key_env="MODEL_KEY")
    assert server.headers == []


def test_a_newline_at_the_end_of_the_key_is_ignored(server, monkeypatch) -> None:
    server.key = {"Authorization": "Bearer s3cret"}
    monkeypatch.setenv("MODEL_KEY", "s3cret\n")
    load_box(server.url, api_key_env="MODEL_KEY")


@pytest.mark.parametrize("key", ["s3cret\nX-Admin: 1", "s3cret\x07", "s3crét"])
def test_a_key_that_a_header_cannot_carry_is_refused_and_not_shown(
    server, monkeypatch, key: str
) -> None:
    monkeypatch.setenv("MODEL_KEY", key)
    with pytest.raises(BoxError, match="MODEL_KEY") as caught:
        load_box(server.url, api_key_env="MODEL_KEY")
    assert "s3cr" not in str(caught.value)
    assert server.headers == []


@pytest.mark.parametrize("binary", [True, False])
def test_tls_works_with_the_specified_authority(
    tls_server, images: np.ndarray, binary: bool
) -> None:
    server, authority = tls_server
    box = load_box(server.url, certificate_authority=authority, binary=binary)
    np.testing.assert_allclose(box(images), server.expected(images), atol=1e-6)


def test_tls_with_an_unknown_authority_is_refused_with_the_remedy(tls_server) -> None:
    server, _ = tls_server
    with pytest.raises(
        BoxError, match=r"(?i)certificate verify failed.*certificate_authority="
    ) as caught:
        load_box(server.url)
    assert not isinstance(caught.value, BoxUnavailable)  # a retry will not help
    assert server.headers == []


def test_a_certificate_for_another_host_is_refused(tls_server) -> None:
    server, authority = tls_server
    with pytest.raises(BoxError, match=r"(?i)certificate verify failed.*localhost"):
        load_box(server.url.replace("127.0.0.1", "localhost"), certificate_authority=authority)


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_an_invalid_certificate_file_is_a_clear_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "authority.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BoxError, match=r"authority.pem cannot be read as a certificate file"):
        load_box("https://127.0.0.1:1/v2/models/tiny", certificate_authority=path)


def test_plain_http_to_a_tls_port_is_unavailable(tls_server) -> None:
    server, _ = tls_server
    with pytest.raises(BoxUnavailable, match="cannot be reached"):
        load_box(server.url.replace("https", "http"), timeout=0.5)


def test_an_address_with_a_password_is_refused_and_not_shown() -> None:
    with pytest.raises(BoxError, match="api_key_env=") as refused:
        load_box("http://user:s3cret@127.0.0.1:1/v2/models/m")
    assert "s3cret" not in str(refused.value)


def test_an_echoed_key_is_hidden(server, images: np.ndarray, monkeypatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "s3cret-key")
    box = load_box(server.url, api_key_env="MODEL_KEY")
    refusal = {"error": "not allowed: Bearer s3cret-key \x1b[2J"}
    server.faults = [lambda handler, _: handler.reply(refusal, status=400)]
    with pytest.raises(BoxError, match=r"not allowed: Bearer \.\.\. \\x1b\[2J"):
        box(images)


def test_an_output_named_like_the_key_does_not_reach_the_card(server, monkeypatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "s3cret-key")
    server.outputs = ["s3cret-key"]
    box = load_box(server.url, api_key_env="MODEL_KEY")
    assert "s3cret" not in box.fingerprint()


HOSTILE_PAGES = {
    "deep": b"[" * 100_000,
    "deep object": b'{"inputs":' * 100_000,
    "numbers as names": {"inputs": [{"name": 1, "datatype": "FP32", "shape": [-1, 3, 8, 8]}]},
    "huge image": {
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3, 10**9, 10**9]}],
        "outputs": [{"name": "p"}],
    },
    "huge batch": {
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [10**400, 3, 8, 8]}],
        "outputs": [{"name": "p"}],
    },
    "escapes": {
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3, 8, 8]}],
        "outputs": [{"name": "\x1b[2Jone"}, {"name": "\u202etwo"}],
    },
}


@pytest.mark.parametrize("name", HOSTILE_PAGES)
def test_hostile_metadata_is_refused_in_words(server, images: np.ndarray, name: str) -> None:
    page = HOSTILE_PAGES[name]
    server.pages["/v2/models/tiny"] = lambda handler: handler.reply(page)
    with pytest.raises(BoxError) as refused:
        load_box(server.url)(images)
    assert str(refused.value).isprintable()


def test_an_output_with_a_number_for_a_name_is_read(server, images: np.ndarray) -> None:
    server.outputs = ["0"]
    answer = {"outputs": [{"name": 0, "datatype": "FP32", "shape": [20, 2], "data": [0.5] * 40}]}
    server.infer = lambda tensor: {"0": np.zeros((len(tensor), 4))}
    server.faults = [lambda handler, _: handler.reply(answer)]
    box = load_box(server.url, workers=1)
    np.testing.assert_array_equal(box(images[:20]), np.full((20, 2), 0.5))


@pytest.mark.parametrize("extensions", [5, {"a": 1}, "binary_tensor_data", [[]]])
def test_odd_extensions_are_no_binary_tensors(server, extensions: object) -> None:
    server.pages["/v2"] = {"extensions": extensions}
    assert load_box(server.url).box.box.binary is False
