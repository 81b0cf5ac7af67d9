"""Class weights and further views in the responses of the proxy."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest

from soda_tta.adaptors import Answering, Bank, Identity
from soda_tta.adaptors.answering import VIEWS
from soda_tta.box import load_box
from soda_tta.cli.spelling import as_flags
from soda_tta.errors import BoxError
from soda_tta.protocols.open_inference import ProtocolError, Tensor, encode_response
from soda_tta.protocols.open_inference_grpc import response_from_grpc
from soda_tta.serve.answers import Answers
from soda_tta.serve.live import FixedAdaptor
from soda_tta.serve.logs import Log

from .conftest import PATH, Darker, message
from .test_grpc import front, inference, local  # noqa: F401 - fixtures

BANK = Bank().adaptor({"median": 0.5})


def weights_of(box: Any) -> Any:
    classes = box(np.zeros((1, 3, 8, 8), np.float32)).shape[1]
    return np.resize([0.2, 3.0, 1.0], classes)


def expected_of(adaptor: Any, box: Any, tensor: Any) -> Any:
    images = (tensor * 0.25 + 0.5).astype(np.float32)
    answering = adaptor.answering
    return answering.received(box(answering.sent(adaptor(images))))


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("views", [(), ("mirror",)])
@pytest.mark.parametrize("adaptor", [BANK, Identity()])
def test_clients_get_the_answers_of_a_run(
    proxied, direct, model_box, tensor, adaptor: Any, views: Any, binary: bool
) -> None:
    adaptor = adaptor.answered(Answering(views, weights_of(model_box)))
    proxy = proxied(FixedAdaptor(adaptor))
    answers = proxy.infer(tensor, binary=binary)
    np.testing.assert_allclose(answers, expected_of(adaptor, model_box, tensor), atol=1e-4)
    assert proxy.count("upstream_queries_total") == 4 * (1 + len(views))
    alone = proxy.infer(tensor[:1], binary=binary)
    np.testing.assert_allclose(alone, answers[:1], atol=1e-4)


def test_a_compressed_request_has_its_answers_too(proxied, model_box, tensor) -> None:
    adaptor = BANK.answered(Answering(("mirror",), weights_of(model_box)))
    body, headers = message(tensor, binary=False)
    packed = {**headers, "content-encoding": "gzip"}
    status, _, content = proxied(FixedAdaptor(adaptor)).ask(
        "POST", PATH, gzip.compress(body), packed
    )
    assert status == 200
    (output,) = json.loads(content)["outputs"]
    rows = np.array(output["data"]).reshape(output["shape"])
    np.testing.assert_allclose(rows, expected_of(adaptor, model_box, tensor), atol=1e-4)


def test_over_grpc_too(front, model_box, tensor) -> None:  # noqa: F811
    adaptor = BANK.answered(Answering(("mirror",), weights_of(model_box)))
    for typed in (False, True):
        proxy, client = front(FixedAdaptor(adaptor))
        answer = client.call("ModelInfer", inference(tensor, typed=typed))
        rows = response_from_grpc(answer, "probabilities")["probabilities"]
        np.testing.assert_allclose(rows, expected_of(adaptor, model_box, tensor), atol=1e-4)
        assert proxy.count("upstream_queries_total") == 8


def test_logits_stay_logits(start, tiny_onnx, tensor) -> None:
    """Their softmax is the answer."""
    from soda_tta.serve.rewriting import scores_of

    box = load_box(lambda images: images, logits=True)
    logits = np.array([[1.0, 3.0, -2.0]], np.float32)
    rows = np.exp(logits) / np.exp(logits).sum()
    answering = Answering((), np.array([1.0, 0.5, 2.0]))
    scores = scores_of(rows[None], Answers(box, "scores"), answering, logits)
    powers = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(powers, answering.answers(rows[None]), atol=1e-6)


def test_probabilities_that_were_declared_logits_are_refused() -> None:
    """Their softmax would hide every gain. The answers to clients pass all the same."""
    rows = {"scores": np.array([[0.1, 0.9], [0.5, 0.5]], np.float32)}
    wrong = Answers(load_box(lambda images: images, logits=True), "scores")
    with pytest.raises(BoxError, match="leave out logits=True") as caught:
        wrong.checked(rows, 2)
    lines: list[str] = []
    Log(lines.append, as_flags).warning("not valid", error=caught.value)
    assert "leave out --logits." in lines[0]
    assert wrong.checked({"scores": 4 * rows["scores"]}, 2).shape == (2, 2)


def test_a_response_without_the_output_is_told_by_its_kind(model_box) -> None:
    """Not by what an error says: a name of the model's choice may be part of that."""
    answers = Answers(model_box, "probabilities")
    rows = np.full((1, 4), 0.25, np.float32)
    other, headers = encode_response([Tensor("features", rows)], model_name="tiny")
    assert answers.from_http(other, headers, 1) is None
    damaged = b'{"outputs": [{"name": "probabilities", "datatype": "contains no output"}]}'
    with pytest.raises(ProtocolError):
        answers.from_http(damaged, {}, 1)


class WithViews(Darker):
    """Learns, and answers with the mean over two views."""

    def answering(self, key: str | None = None) -> Answering:
        return Answering(("mirror",), np.array([1.0, 0.0, 0.0]))


def test_the_learner_gets_the_response_to_the_image_itself(proxied, direct, tensor) -> None:
    live = WithViews()
    dark = np.minimum(tensor, -0.5)  # Darker leaves these as they are
    proxy = proxied(live)
    plain = direct.infer(dark)
    live.answering = lambda key=None: Answering(("mirror",), np.ones(plain.shape[1]))
    proxy.infer(dark)
    assert live.got.wait(5)
    np.testing.assert_allclose(live.arrivals[0][1], plain, atol=1e-6)


def test_a_response_that_cannot_be_rewritten_passes_as_it_is(proxied, direct, tensor) -> None:
    """The weights are for another model."""
    adaptor = Identity().answered(Answering((), np.ones(77)))
    proxy = proxied(FixedAdaptor(adaptor))
    np.testing.assert_array_equal(proxy.infer(tensor), direct.infer(tensor))
    assert proxy.count("errors_total[answers]") == 1
    assert any("without class weights" in line for line in proxy.lines)


def test_a_view_without_a_response_is_left_out(proxied, direct, model_box, tensor) -> None:
    send = direct.proxy.upstream.reply
    weights = weights_of(model_box)
    mirror = VIEWS["mirror"](tensor)

    def reply(verb: str, path: str, headers: Any, body: bytes) -> Any:
        if mirror.tobytes() in body:
            raise RuntimeError("out of order")
        return send(verb, path, headers, body)

    direct.proxy.upstream.reply = reply
    adaptor = Identity().answered(Answering(("mirror",), weights))
    answers = proxied(FixedAdaptor(adaptor)).infer(tensor)
    alone = Identity().answered(Answering((), weights))
    np.testing.assert_allclose(answers, expected_of(alone, model_box, tensor), atol=1e-4)
