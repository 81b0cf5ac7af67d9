"""Who may do what: keys, headers, routes, TLS; and that no key is ever shown."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import trustme

from soda_tta.errors import SodaError
from soda_tta.serve.headers import Passing
from soda_tta.serve.keys import Keys, read_key
from soda_tta.serve.server import Listening
from soda_tta.serve.upstream import taken_apart

from .conftest import PATH, Darker, Scripted, error_of, message

CLIENT, ADMIN = "client-key-0123456789", "admin-key-0123456789ab"
KEYS = Keys(CLIENT, ADMIN)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    "headers",
    [{}, bearer("wrong"), bearer(CLIENT[:-1]), {"X-API-Key": ""}, {"Authorization": CLIENT}],
)
def test_without_the_key_nothing_reaches_the_model(behind, scripted, tensor, headers) -> None:
    proxy = behind(keys=KEYS)
    body, own = message(tensor)
    for verb, path in (("POST", PATH), ("GET", "/v2"), ("GET", "/v2/models/tiny")):
        status, received, content = proxy.ask(verb, path, body, {**own, **headers})
        assert status == 401 and received["www-authenticate"] == "Bearer"
        assert error_of(content) == "a valid API key is missing."
    assert scripted.requests == []
    assert proxy.ask("GET", "/v2/health/live")[0] == 200  # for orchestrators
    assert proxy.ask("GET", "/v2/health/ready")[0] == 200


@pytest.mark.parametrize("headers", [bearer(CLIENT), {"X-API-Key": CLIENT}, bearer(ADMIN)])
def test_with_the_key_the_model_answers_and_does_not_see_it(
    behind,
    scripted: Scripted,
    tensor,
    headers,
) -> None:
    proxy = behind(keys=KEYS, passing=Passing(keeps_authorization=True), log_requests=True)
    body, own = message(tensor)
    assert proxy.ask("POST", PATH, body, {**own, **headers})[0] == 200
    sent = str(scripted.requests[0][1])
    assert CLIENT not in sent and ADMIN not in sent
    assert not any(key in line for line in proxy.lines for key in (CLIENT, ADMIN))


def test_control_needs_the_admin_key(proxied) -> None:
    proxy = proxied(Darker(), keys=KEYS)
    for path in ("/control/status", "/control/pause", "/metrics"):
        for headers in ({}, bearer(CLIENT), bearer("wrong")):
            assert proxy.ask("POST", path, b"", headers)[0] == 401
    assert proxy.proxy.adapting.paused is False
    assert proxy.ask("POST", "/control/pause", b"", bearer(ADMIN))[0] == 200
    assert proxy.ask("GET", "/metrics", b"", bearer(ADMIN))[0] == 200
    status = json.loads(proxy.ask("GET", "/control/status", b"", bearer(ADMIN))[2])
    assert status["paused"] is True and CLIENT not in str(status) and ADMIN not in str(status)


def test_without_an_admin_key_only_programs_on_this_machine_control(start, proxied, direct) -> None:
    proxy = proxied()
    assert proxy.ask("POST", "/control/pause")[0] == 200
    for headers in (
        {"Host": "evil.example"},  # a name that was pointed at this machine
        {"Origin": "http://evil.example"},  # a page in a browser
    ):
        assert proxy.ask("POST", "/control/resume", b"", headers)[0] == 403
    assert proxy.proxy.adapting.paused is True
    same = f"http://127.0.0.1:{proxy.port}"
    assert proxy.ask("POST", "/control/resume", b"", {"Origin": same})[0] == 200
    public = proxied(place=Listening(host="0.0.0.0", port=0))
    assert public.ask("GET", "/control/status")[0] == 403
    assert public.ask("GET", "/v2")[0] == 200


@pytest.mark.parametrize(
    "path",
    ["/v2/repository/models/tiny/unload", "/v2/systemsharedmemory/unregister", "/v2/logging"],
)
def test_routes_that_control_the_model_need_the_admin_key(behind, scripted, path) -> None:
    proxy = behind(keys=KEYS)
    assert proxy.ask("POST", path, b"{}", bearer(CLIENT))[0] == 401
    assert scripted.requests == []
    assert proxy.ask("POST", path, b"{}", bearer(ADMIN))[0] == 200
    assert scripted.requests[0][0] == path


def test_only_listed_headers_pass(behind, scripted: Scripted, tensor) -> None:
    proxy = behind(passing=Passing(["X-Tenant", "Host", "Transfer-Encoding"]))
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    body, own = message(tensor)
    scripted.replies.append((200, {"X-Tenant": "a", "Set-Cookie": "b=c"}, b"{}"))
    sent = {"traceparent": trace, "X-Tenant": "t", "Cookie": "c", "X-Forwarded-For": "1.2.3.4"}
    _, received, _ = proxy.ask("POST", PATH, body, {**own, **sent, "Authorization": "Bearer z"})
    assert received["x-tenant"] == "a" and "set-cookie" not in received
    assert "aiohttp" not in received["server"]
    arrived = {name.lower(): value for name, value in scripted.requests[0][1].items()}
    assert arrived["traceparent"] == trace and arrived["x-tenant"] == "t"
    assert arrived["authorization"] == "Bearer z"  # for the model: the proxy has no key
    assert not {"cookie", "x-forwarded-for", "user-agent"} & arrived.keys()
    assert arrived["host"] == scripted.url.split("/")[2]


def test_the_proxys_own_key_replaces_the_clients(behind, scripted, tensor) -> None:
    proxy = behind(passing=Passing(key={"Authorization": "Bearer mine"}))
    body, own = message(tensor)
    proxy.ask("POST", PATH, body, {**own, **bearer("theirs")})
    assert scripted.requests[0][1]["authorization"] == "Bearer mine"


def test_no_request_chooses_the_model(behind, scripted, direct, tensor) -> None:
    proxy = behind()
    other = direct.url.split("/")[2]
    for headers in ({"Host": other}, {"X-Forwarded-Host": other}, {"Forwarded": f"host={other}"}):
        assert proxy.ask("GET", "/v2", b"", headers)[0] == 200
    assert len(scripted.requests) == 3
    for path in ("@" + other + "/v2", "//" + other + "/v2", f"http://{other}/v2"):
        assert proxy.ask("GET", path)[0] in (400, 404)
    assert direct.count("upstream_requests_total") == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://host/v2",
        "ftp://host/v2/models/a",
        "http://host/v2/models/",
        "http://h/v2/models/a/b",
    ],
)
def test_an_upstream_without_a_model_is_refused(url: str) -> None:
    with pytest.raises(SodaError, match="names no model"):
        taken_apart(url)


def test_keys_come_from_a_file_or_the_environment(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("KEY_OF_TEST", raising=False)
    assert read_key(None, "KEY_OF_TEST") is None
    monkeypatch.setenv("KEY_OF_TEST", CLIENT)
    assert read_key(None, "KEY_OF_TEST") == CLIENT
    file = tmp_path / "key"
    file.write_text(ADMIN + "\n")
    assert read_key(file, "KEY_OF_TEST") == ADMIN
    for text in ("", "short", "a key with spaces in it"):
        file.write_text(text)
        with pytest.raises(SodaError, match="no valid key") as caught:
            read_key(file, "KEY_OF_TEST")
        assert not text or text not in str(caught.value)
    with pytest.raises(SodaError, match="cannot be read"):
        read_key(tmp_path / "absent", "KEY_OF_TEST")


def test_tls(proxied, tmp_path: Path) -> None:
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    own.cert_chain_pems[0].write_to_path(str(tmp_path / "certificate.pem"))
    files = (tmp_path / "certificate.pem", tmp_path / "key.pem")
    proxy = proxied(place=Listening("127.0.0.1", 0, *files))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    assert proxy.url.startswith("https://")
    with urllib.request.urlopen(proxy.url, context=context) as response:
        assert json.load(response)["name"] == "tiny"
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(proxy.url)
    with pytest.raises(SodaError, match="cannot be used"):
        Listening(certificate=tmp_path / "key.pem").context()
    with pytest.raises(SodaError, match="needs its certificate"):
        Listening(key=tmp_path / "key.pem").context()
