"""An adaptor for several conditions in the files that are deployed: the router is part of them."""

from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.adaptors import RoutedAdaptor
from soda_tta.box import load_box
from soda_tta.engine.adapted_graph import InThreeSteps, adapted_graph
from soda_tta.engine.export import write_model
from soda_tta.engine.export_check import largest_deviation, pictures_for
from soda_tta.types import Array


def test_one_file_and_the_three_of_triton_route_each_image(
    tiny_onnx: Any, tmp_path: Path, images: Array, routed_adaptor: RoutedAdaptor
) -> None:
    images = np.rint(images * 255).astype(np.float32) / 255
    model = load_box(tiny_onnx())
    adapted, routes = routed_adaptor.routed(images)
    assert set(routes.conditions) == {0, 1} and routes.familiar.all()
    graph = adapted_graph(routed_adaptor, model, "uint8")
    write_model(graph.merged(), tmp_path / "adapted.onnx")  # `export --merge`
    for deployed in (load_box(tmp_path / "adapted.onnx"), InThreeSteps(graph)):
        np.testing.assert_allclose(deployed(images), model(adapted), atol=1e-5)
        np.testing.assert_allclose(deployed(images[:1]), model(adapted[:1]), atol=1e-5)
        deviation, notices = largest_deviation(
            graph, deployed, list(pictures_for(graph, None, None))
        )
        assert deviation <= 1e-5 and not notices
