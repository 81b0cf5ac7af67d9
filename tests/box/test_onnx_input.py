"""The view of a model as ONNX nodes: the same pixels as Pillow gives, for any size."""

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.box.onnx_input import shrunk, viewed
from soda_tta.box.view import View
from soda_tta.protocols.onnx_graphs import GraphBuilder, tensor_info

SIDES = ["height", "width"]
PIXELS = np.random.default_rng(0).random((2, 3, 300, 300), dtype=np.float32)


def session_of(view: View, step) -> onnxruntime.InferenceSession:
    graph = GraphBuilder(12)
    graph.name_it(step(graph, "images", view), "resized")
    source = tensor_info("images", "float32", ["n", 3, *SIDES])
    result = tensor_info("resized", "float32", [None] * 4)
    return onnxruntime.InferenceSession(graph.as_model([source], [result]).SerializeToString())


VIEWS = [View((24, 32)), View((24, 32), crop=1.0), View((31, 17), crop=0.875)]
SESSIONS = {view: session_of(view, viewed) for view in VIEWS}


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(VIEWS), st.integers(1, 300), st.integers(1, 300))
def test_resizing_equals_pillow(view: View, height: int, width: int) -> None:
    images = np.ascontiguousarray(PIXELS[:, :, :height, :width])
    (resized,) = SESSIONS[view].run(None, {"images": images})
    np.testing.assert_allclose(resized, view(images), atol=2e-6, rtol=0)  # sums in float32


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_an_image_of_the_size_stays_as_it_is(view: View) -> None:
    images = np.ascontiguousarray(PIXELS[:, :, : view.size[0], : view.size[1]])
    (resized,) = SESSIONS[view].run(None, {"images": images})
    assert (resized == images).all()


def test_only_images_with_more_pixels_are_made_smaller() -> None:
    view = View((24, 32))
    session = session_of(view, shrunk)
    for height, width, shape in [(24, 33, (24, 32)), (24, 32, (24, 32)), (12, 64, (12, 64))]:
        images = np.ascontiguousarray(PIXELS[:, :, :height, :width])
        assert session.run(None, {"images": images})[0].shape[2:] == shape
