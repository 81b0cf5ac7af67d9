"""The deployed model seen from outside. One file a back end; wrappers that are boxes themselves."""

from soda_tta.box.batched import Batched
from soda_tta.box.box import Box, Wrapper
from soda_tta.box.cached import Cached
from soda_tta.box.input import Input
from soda_tta.box.load import load_box
from soda_tta.box.metered import Ledger, Metered
from soda_tta.box.onnx_runtime import OnnxBox
from soda_tta.box.open_inference import OpenInferenceBox
from soda_tta.box.python import CallableBox
from soda_tta.box.quantised import Quantised
from soda_tta.box.recorded import Recorded, Transcript, asking, left_to_spend
from soda_tta.box.retrying import Retrying
from soda_tta.box.torch_module import ModuleBox

__all__ = [
    "Batched",
    "Box",
    "Cached",
    "CallableBox",
    "Input",
    "Ledger",
    "Metered",
    "ModuleBox",
    "OnnxBox",
    "OpenInferenceBox",
    "Quantised",
    "Recorded",
    "Retrying",
    "Transcript",
    "Wrapper",
    "asking",
    "left_to_spend",
    "load_box",
]
