"""The same over gRPC: adapted, passed on, refused, and the next call is served."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2 as messages

from soda_tta.adaptors import Answering
from soda_tta.box import load_box
from soda_tta.protocols.open_inference_grpc import response_from_grpc
from soda_tta.serve.grpc_upstream import Failed, LocalGrpc, RemoteGrpc
from soda_tta.serve.headers import Passing
from soda_tta.serve.keys import Keys
from soda_tta.serve.limits import Limits
from soda_tta.serve.local import LocalModel
from soda_tta.serve.upstream import HttpUpstream

from .conftest import PATIENCE, Darker, Served
from .test_http import halved
from .test_security import ADMIN, CLIENT

OK, CODES = 0, grpc.StatusCode


class Client:
    """Calls by name, with messages or bytes."""

    def __init__(self, served: Served) -> None:
        assert served.running.grpc_server is not None
        self.channel = grpc.insecure_channel(f"127.0.0.1:{served.running.grpc_server.port}")

    def call(self, method: str, request: Any, **metadata: str) -> Any:
        data = request if isinstance(request, bytes) else request.SerializeToString()
        call = self.channel.unary_unary(f"/inference.GRPCInferenceService/{method}")
        pairs = [(name.replace("_", "-"), value) for name, value in metadata.items()]
        answer = call(data, timeout=PATIENCE, metadata=pairs)
        return getattr(messages, f"{method}Response").FromString(answer)

    def infer(self, tensor: Any, **metadata: str) -> Any:
        answer = self.call("ModelInfer", inference(tensor), **metadata)
        return response_from_grpc(answer, "probabilities")["probabilities"]

    def code(self, method: str, request: Any, **metadata: str) -> Any:
        with pytest.raises(grpc.RpcError) as caught:
            self.call(method, request, **metadata)
        return caught.value.code()


def inference(tensor: Any, *, typed: bool = False, name: str = "tiny", **entry: Any) -> Any:
    image = messages.ModelInferRequest.InferInputTensor(
        **{"name": "images", "datatype": "FP32", "shape": tensor.shape, **entry}
    )
    if typed:
        image.contents.fp32_contents.extend(tensor.ravel().tolist())
    raw = [] if typed else [tensor.tobytes()]
    return messages.ModelInferRequest(model_name=name, inputs=[image], raw_input_contents=raw)


@pytest.fixture
def local(start: Any, model_box: Any) -> Served:
    """The model, served as it is over both."""
    model = LocalModel(model_box, "tiny")
    return start(model, grpc=LocalGrpc(model))


@pytest.fixture
def front(start: Any, local: Served, model_box: Any) -> Iterator[Callable[..., tuple]]:
    """Starts a proxy in front of it, and a client: `front(live, **options)`."""
    clients = []

    def started(live: Any = None, **options: Any) -> tuple[Served, Client]:
        remote = RemoteGrpc(local.running.grpc_url or "", timeout=PATIENCE)
        proxy = start(HttpUpstream(local.url), live, box=model_box, grpc=remote, **options)
        clients.append(Client(proxy))
        return proxy, clients[-1]

    yield started
    for client in clients:
        client.channel.close()


@pytest.mark.parametrize("typed", [False, True])
def test_images_are_adapted_and_asked_once(front, local, tensor, typed: bool) -> None:
    live = Darker()
    proxy, client = front(live, key_header="X-Camera-Id")
    answer = client.call("ModelInfer", inference(tensor, typed=typed), x_camera_id="gate")
    answers = response_from_grpc(answer, "probabilities")["probabilities"]
    np.testing.assert_allclose(answers, local.infer(halved(tensor)), atol=1e-5)
    assert proxy.count("images_total[adapted]") == 2 and proxy.count("upstream_queries_total") == 4
    assert live.got.wait(PATIENCE)
    ((images, probabilities, key),) = live.arrivals
    np.testing.assert_allclose(images, tensor * 0.25 + 0.5, atol=1e-6)
    np.testing.assert_allclose(probabilities, answers, atol=1e-6)
    assert key == "gate"


class Mirrored(Darker):
    """Answers with the mean over two views."""

    def answering(self, key: str | None = None) -> Answering:
        return Answering(("mirror",))


@contextmanager
def occupied(pool: Executor, threads: int) -> Iterator[None]:
    """All threads of a pool wait."""
    gate = threading.Event()
    waiting = [pool.submit(gate.wait, PATIENCE) for _ in range(threads)]
    try:
        yield
    finally:
        gate.set()
        for each in waiting:
            each.result(PATIENCE)


def test_views_do_not_need_the_threads_that_adapt(front, tensor) -> None:
    proxy, client = front(Mirrored())
    pool = proxy.proxy.pool
    with occupied(pool, pool._max_workers):
        assert client.infer(tensor).shape == (4, 4)


def test_a_view_that_was_not_sent_is_not_sent_after_a_failure(front, local, tensor) -> None:
    calls = []
    remote = local.running.grpc

    def call(method: str, request: bytes, *more: Any) -> bytes:
        calls.append(request)
        raise Failed(CODES.RESOURCE_EXHAUSTED, "slow down")

    proxy, client = front(Mirrored(), limits=Limits(concurrency=1))
    remote.call = call
    with occupied(proxy.running.grpc_server.views, 1):
        assert client.code("ModelInfer", inference(tensor)) == CODES.RESOURCE_EXHAUSTED
    proxy.running.grpc_server.views.submit(int).result(PATIENCE)  # after the view in the queue
    assert len(calls) == 1


def test_unchanged_requests_are_forwarded_byte_for_byte(front, local, tensor) -> None:
    requests = []
    call = local.running.grpc.call
    local.running.grpc.call = lambda *each: requests.append(each[:2]) or call(*each)
    _, client = front()
    sent = inference(tensor, typed=True).SerializeToString() + b"\xa2\x06\x03new"  # a later field
    client.call("ModelInfer", sent)
    assert requests == [("ModelInfer", sent)]


def test_our_own_box_over_grpc_sees_no_difference(front, local, images) -> None:
    proxy, _ = front()
    facts = dict(mean=0.5, std=0.25)
    ours, theirs = load_box(proxy.running.grpc_url, **facts), load_box(local.url, **facts)
    np.testing.assert_allclose(ours(images), theirs(images), atol=1e-6)
    assert ours.box.box.input == theirs.box.box.input


def test_the_other_methods_pass(front) -> None:
    _, client = front()
    assert client.call("ServerLive", messages.ServerLiveRequest()).live
    assert client.call("ServerReady", messages.ServerReadyRequest()).ready
    assert client.call("ModelReady", messages.ModelReadyRequest(name="tiny")).ready
    assert client.call("ServerMetadata", messages.ServerMetadataRequest()).name == "soda-tta"
    assert client.code("RepositoryIndex", messages.RepositoryIndexRequest()) == CODES.UNIMPLEMENTED
    stream = client.channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
    with pytest.raises(grpc.RpcError, match="no streams"):
        list(stream(iter([b""]), timeout=PATIENCE))


def test_errors_are_the_models_own(front, tensor) -> None:
    _, client = front(Darker())
    assert client.code("ModelInfer", inference(tensor, name="other")) == CODES.NOT_FOUND
    assert client.code("ModelInfer", inference(tensor, datatype="INT32")) == CODES.INVALID_ARGUMENT
    assert client.infer(tensor).shape == (4, 4)


@pytest.mark.parametrize(
    "request_of",
    [
        lambda tensor: b"\xff\xff\xff",
        lambda tensor: inference(tensor, shape=[4, 3, 8, 9]),
        lambda tensor: inference(tensor, shape=[2**40, 2**40, 3, 8]),
        lambda tensor: inference(tensor, shape=[-1, 3, 8, 8]),
        lambda tensor: inference(tensor, typed=True, shape=[1, 3, 8, 8]),
        lambda tensor: messages.ModelInferRequest(
            model_name="tiny",
            inputs=inference(tensor).inputs,
            raw_input_contents=[b"", b""],
        ),
    ],
)
def test_bad_calls_are_refused_and_the_next_is_served(front, tensor, request_of) -> None:
    proxy, client = front(Darker())
    assert client.code("ModelInfer", request_of(tensor)) == CODES.INVALID_ARGUMENT
    assert client.infer(tensor).shape == (4, 4)
    assert proxy.count("errors_total[bad request]") == 1


def test_a_message_above_the_limit_is_refused_and_the_next_is_served(front, tensor) -> None:
    _, client = front(limits=Limits(body_bytes=5000))
    large = np.zeros((8, 3, 8, 8), np.float32)
    assert client.code("ModelInfer", inference(large)) == CODES.RESOURCE_EXHAUSTED
    assert client.infer(tensor).shape == (4, 4)


def test_keys(front, tensor) -> None:
    passing = Passing(keeps_authorization=True)
    _, client = front(keys=Keys(CLIENT, ADMIN), passing=passing)
    assert client.code("ModelInfer", inference(tensor)) == CODES.UNAUTHENTICATED
    assert client.infer(tensor, authorization=f"Bearer {CLIENT}").shape == (4, 4)
    assert client.call("ServerReady", messages.ServerReadyRequest()).ready
    unload = messages.RepositoryModelUnloadRequest(model_name="tiny")
    bearer = dict(authorization=f"Bearer {CLIENT}")
    assert client.code("RepositoryModelUnload", unload, **bearer) == CODES.PERMISSION_DENIED
    admin = dict(x_api_key=ADMIN)
    assert client.code("RepositoryModelUnload", unload, **admin) == CODES.UNIMPLEMENTED


def test_a_dead_model_is_unavailable_without_its_address(start, model_box, tensor) -> None:
    remote = RemoteGrpc("grpc://127.0.0.1:1/tiny", timeout=2)
    proxy = start(HttpUpstream("http://127.0.0.1:1/v2/models/tiny"), box=model_box, grpc=remote)
    with pytest.raises(grpc.RpcError) as caught:
        Client(proxy).infer(tensor)
    assert caught.value.code() == CODES.UNAVAILABLE
    assert caught.value.details() == "the model did not respond."
