"""REST APIs that take image files, from a real HTTP server in this process."""

import base64
import email.parser
import email.policy
import io
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from soda_tta import adapt
from soda_tta.box import Ledger, Meter, load_box
from soda_tta.box.like import load_box_like
from soda_tta.box.price import Price
from soda_tta.box.probabilities import softmax
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.testing import check_box

MATRIX = np.random.default_rng(5).normal(size=(3, 4))
NAMES = ["cat", "dog", "emu", "owl"]
KEY = "hf_topsecret123"
BODY = 'labels = "[*].label"\nscores = "[*].score"'


class Api:
    """Answers each request with what `reply` makes of the rows; keeps what it received."""

    def __init__(self) -> None:
        self.received: list[tuple[dict[str, str], bytes, str]] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        self.statuses: list[int] = []  # of the next requests
        self.files: Callable[[dict[str, str], bytes], list[bytes]] = lambda headers, body: [body]
        self.reply: Callable[[Any], Any] = lambda rows: listed(rows[0])
        self.pixels: list[np.ndarray] = []

    def answer(self, headers: dict[str, str], body: bytes, path: str) -> tuple[int, bytes]:
        self.received.append((headers, body, path))
        status = self.statuses.pop(0) if self.statuses else self.status
        if status != 200:
            return status, json.dumps({"error": f"no: {headers.get('authorization')}"}).encode()
        images = [np.asarray(Image.open(io.BytesIO(f))) for f in self.files(headers, body)]
        self.pixels += images
        colours = np.stack([image.mean((0, 1)) / 255 for image in images])
        reply = self.reply(softmax(colours @ MATRIX))
        return 200, reply if isinstance(reply, bytes) else json.dumps(reply).encode()


def listed(row: np.ndarray) -> list[dict[str, Any]]:
    order = np.argsort(-row)
    return [{"label": NAMES[index], "score": float(row[index])} for index in order]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    state = Api()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, data = state.answer(headers, body, self.path)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **state.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}/classify"
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture
def describe(api: Api, tmp_path: Path) -> Callable[..., str]:
    """Writes a description; returns its path."""

    def write(answer: str = BODY, image: str = "", top: str = "", more: str = "") -> str:
        path = tmp_path / "api.toml"
        path.write_text(
            f'url = "{api.url}"\nclasses = {json.dumps(NAMES)}\n{top}\n'
            f"[answer]\n{answer}\n[image]\n{image}\n{more}"
        )
        return str(path)

    return write


@pytest.fixture
def bytes_of_images() -> np.ndarray:
    levels = np.random.default_rng(0).integers(0, 256, (5, 3, 6, 8))
    return (levels / np.float32(255)).astype(np.float32)


def expected(images: np.ndarray) -> np.ndarray:
    return softmax(images.astype(np.float64).mean((2, 3)) @ MATRIX)


def test_png_in_the_body_arrives_to_the_bit(api, describe, bytes_of_images) -> None:
    box = load_box(describe())
    np.testing.assert_allclose(box(bytes_of_images), expected(bytes_of_images), atol=1e-6)
    assert sorted(p.tobytes() for p in api.pixels) == sorted(
        np.rint(image.transpose(1, 2, 0) * 255).astype(np.uint8).tobytes()
        for image in bytes_of_images
    )
    headers = api.received[0][0]
    assert headers["content-type"] == "image/png" and headers["accept"] == "application/json"
    assert len(api.received) == len(bytes_of_images) and box.batch == 1


def test_it_behaves_as_every_box(describe) -> None:
    check_box(load_box(describe()))


def test_floats_are_rounded_and_the_search_knows_it(describe) -> None:
    images = np.random.default_rng(1).random((3, 3, 6, 8), np.float32)
    box = load_box(describe())
    assert box.quantum == pytest.approx(1 / 255)
    np.testing.assert_allclose(box(images), expected(box.as_received(images)), atol=1e-6)


def test_jpeg_is_what_the_search_expects_it_to_be(api, describe) -> None:
    images = np.random.default_rng(1).random((2, 3, 16, 16), np.float32)
    box = load_box(describe(image='format = "jpeg"\nquality = 80'), workers=1)
    np.testing.assert_allclose(box(images), expected(box.as_received(images)), atol=1e-6)
    received = np.stack(api.pixels).transpose(0, 3, 1, 2) / np.float32(255)
    np.testing.assert_array_equal(box.as_received(images), received)
    assert api.received[0][0]["content-type"] == "image/jpeg"
    assert box.as_received(images[:0]).shape == images[:0].shape


def test_images_are_resized_if_the_description_says_so(api, describe, bytes_of_images) -> None:
    box = load_box(describe(image="size = [4, 2]"))
    box(bytes_of_images[:1])
    assert api.pixels[0].shape == (4, 2, 3) and box.input.size == (4, 2)
    load_box(describe(image="size = [4, 2]"), size=3)(bytes_of_images[:1])
    assert api.pixels[1].shape == (3, 3, 3)


def test_multipart_carries_several_images_and_texts(api, describe, bytes_of_images) -> None:
    texts = {}

    def files(headers: dict[str, str], body: bytes) -> list[bytes]:
        head = f"Content-Type: {headers['content-type']}\r\n\r\n".encode()
        message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
        parts = {"image": [], "k": []}
        for part in message.iter_parts():
            name = part.get_param("name", header="content-disposition")
            parts[name].append(part.get_payload(decode=True))
        texts["k"] = parts["k"]
        return parts["image"]

    api.files = files
    api.reply = lambda rows: {"rows": [{"s": row.tolist()} for row in rows]}
    image = 'send = "multipart"\nper_request = 3\nfields = {k = "5"}'
    box = load_box(describe('scores = "rows[*].s"', image))
    np.testing.assert_allclose(box(bytes_of_images), expected(bytes_of_images), atol=1e-6)
    assert texts == {"k": [b"5"]}
    assert len(api.received) == 3  # five images over four workers: pieces of two


def test_base64_stands_in_a_json_template(api, describe, bytes_of_images) -> None:
    def files(headers: dict[str, str], body: bytes) -> list[bytes]:
        document = json.loads(body)
        assert document["parameters"] == {"k": 4}
        start = "data:image/png;base64,"
        texts = [instance["content"] for instance in document["instances"]]
        assert all(text.startswith(start) for text in texts)
        return [base64.b64decode(text.removeprefix(start)) for text in texts]

    api.files = files
    api.reply = lambda rows: {"predictions": [listed(row) for row in rows]}
    image = (
        'send = "json"\npath = "instances[*].content"\nper_request = 2\n'
        'prefix = "data:image/png;base64,"\ntemplate = {parameters = {k = 4}}'
    )
    paths = 'labels = "predictions[*][*].label"\nscores = "predictions[*][*].score"'
    box = load_box(describe(paths, image), workers=1)
    np.testing.assert_allclose(box(bytes_of_images), expected(bytes_of_images), atol=1e-6)
    assert len(api.received) == 3 and api.received[0][0]["content-type"] == "application/json"


def test_missing_classes_share_what_is_missing(api, describe, bytes_of_images) -> None:
    api.reply = lambda rows: listed(rows[0])[:2]
    box = load_box(describe(BODY + "\ntop = 2"))
    rows = box(bytes_of_images)
    right = expected(bytes_of_images)
    top = np.argsort(-right, axis=1)[:, :2]
    np.testing.assert_allclose(
        np.take_along_axis(rows, top, 1), np.take_along_axis(right, top, 1), atol=1e-6
    )
    np.testing.assert_allclose(rows.sum(1), 1, atol=1e-6)
    assert box.partial and not box.logits


def test_logits_become_probabilities(api, describe, bytes_of_images) -> None:
    api.reply = lambda rows: {"s": (np.log(rows[0]) + 3).tolist()}
    box = load_box(describe('scores = "s"\nkind = "logits"'))
    np.testing.assert_allclose(box(bytes_of_images), expected(bytes_of_images), atol=1e-6)


def test_keys_come_from_the_environment_and_are_never_shown(
    api, describe, bytes_of_images, monkeypatch, tmp_path
) -> None:
    monkeypatch.setenv("HF_TOKEN", KEY)
    more = '[headers]\nAuthorization = "Bearer ${HF_TOKEN}"\n[query]\napi_key = "${HF_TOKEN}"'
    path = describe(more=more)
    box = load_box(path, retries=0)
    box(bytes_of_images[:1])
    headers, _, target = api.received[0]
    assert headers["authorization"] == f"Bearer {KEY}" and target == f"/classify?api_key={KEY}"
    api.status = 401
    with pytest.raises(BoxError, match="check the key in the environment: HF_TOKEN") as raised:
        box(bytes_of_images[:1])
    api.status = 503
    with pytest.raises(BoxUnavailable) as unavailable:
        box(bytes_of_images[:1])
    shown = [str(raised.value), str(unavailable.value), repr(box), json.dumps(box.card())]
    shown += [box.fingerprint(), Path(path).read_text()]
    assert not [text for text in shown if KEY in text]
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(BoxError, match=r"headers.Authorization: .* HF_TOKEN is not set"):
        load_box(path)


def test_no_file_of_a_run_holds_the_key(
    api, describe, bytes_of_images, monkeypatch, tmp_path
) -> None:
    monkeypatch.setenv("HF_TOKEN", KEY)
    path = describe(more='[headers]\nAuthorization = "Bearer ${HF_TOKEN}"')
    run = adapt(bytes_of_images, path, method="deployed", out=tmp_path / "run")
    assert run.ledger.total == run.ledger.calls == len(bytes_of_images)
    files = [file for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert files and not [file for file in files if KEY.encode() in file.read_bytes()]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, r"add the key under \[headers\]"),
        (403, r"add the key under \[headers\]"),
        (404, "check url"),
        (413, "set size, format"),
        (415, "check format and send"),
        (422, r"check \[image\]"),
        (500, "answered 500: no"),
    ],
)
def test_a_refusal_names_the_remedy(api, describe, bytes_of_images, status, message) -> None:
    api.status = status
    with pytest.raises(BoxError, match=message) as raised:
        load_box(describe())(bytes_of_images[:1])
    assert not isinstance(raised.value, BoxUnavailable) and len(api.received) == 1


def test_a_new_address_is_named(api, describe, bytes_of_images) -> None:
    api.status, api.headers = 308, {"Location": "https://elsewhere/x"}
    with pytest.raises(BoxError, match="set url to the new address, https://elsewhere/x"):
        load_box(describe())(bytes_of_images[:1])


def test_a_busy_api_is_asked_again_not_before_it_allows(
    api, describe, bytes_of_images, patient
) -> None:
    api.statuses, api.headers = [429, 503], {"Retry-After": "7"}
    meter = Meter(load_box(describe()), Ledger())
    meter.asking("probe")(bytes_of_images[:1])
    assert patient == [7, 7]
    assert meter.ledger.by_purpose() == {"probe": 1, "retried": 1}  # a 429 was declined


WRONG = {
    "a web page": (b"<!doctype html><title>Log in</title>", "answered with a web page that is not"),
    "no json": (b"OK", "answered with something that is not JSON: OK"),
    "an error inside": (
        {"error": {"message": "quota"}},
        r"api.toml\): the answer holds an error .*quota",
    ),
    "an unknown class": ([{"label": "cow", "score": 1.0}], "'cow', which is not in classes"),
    "no scores": ([], "no scores"),
    "a sum": (
        [{"label": name, "score": 30} for name in NAMES],
        'sum to 120, not 1; set kind = "percent"',
    ),
}


@pytest.mark.parametrize(("reply", "message"), WRONG.values(), ids=WRONG)
def test_an_answer_that_cannot_be_used_is_a_clear_error(
    api, describe, bytes_of_images, reply, message
) -> None:
    api.reply = lambda rows: reply
    with pytest.raises(BoxError, match=message):
        load_box(describe(BODY + '\nerror = "error.message"'))(bytes_of_images[:1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": 0.5}, "normalises them itself; leave out mean"),
        ({"layout": "NCHW"}, "leave out layout"),
        ({"logits": True}, r"set kind under \[answer\]"),
        ({"partial": True}, r"set top under \[answer\]"),
        ({"batch": 2}, "allows 1 per request, not 2; .*per_request"),
        ({"api_key_env": "X"}, "does not have the option api_key_env"),
        ({"threads": 2}, "does not have the option threads"),
    ],
)
def test_options_that_contradict_the_description_are_refused(describe, options, message) -> None:
    with pytest.raises(BoxError, match=message):
        load_box(describe(), **options)


def test_the_price_is_that_of_the_description(describe) -> None:
    assert load_box(describe(top='price = "0.002 per call"')).price == Price(0.002, "call", 1)
    assert load_box(describe()).price is None
    with pytest.raises(BoxError, match=r"api.toml: price is not valid: 'free' is not a valid"):
        load_box(describe(top='price = "free"'))


def test_a_run_is_continued_with_the_same_description(describe) -> None:
    card = load_box(describe(BODY + "\ntop = 2")).card()
    box, notice = load_box_like(card, describe(BODY + "\ntop = 2"))
    assert notice is None and box.partial
    _, notice = load_box_like(card, describe())
    assert "this is not the model" in notice


def test_requests_are_signed_for_amazon(api, describe, bytes_of_images, monkeypatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    more = '[aws]\nregion = "eu-west-1"\nservice = "rekognition"'
    load_box(describe(more=more))(bytes_of_images[:1])
    signature = api.received[0][0]["authorization"]
    assert "/eu-west-1/rekognition/aws4_request" in signature
    assert "SignedHeaders=accept;content-type;host;x-amz-date" in signature
    assert "wJalr" not in signature
