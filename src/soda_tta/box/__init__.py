"""The deployed model seen from outside: one file per back end, and wrappers that are boxes too."""

from soda_tta.box.backends.onnx_runtime import OnnxBox
from soda_tta.box.backends.open_inference import OpenInferenceBox
from soda_tta.box.backends.open_inference_grpc import OpenInferenceGrpcBox
from soda_tta.box.backends.python import CallableBox
from soda_tta.box.backends.rest import RestBox
from soda_tta.box.backends.tflite import TfliteBox
from soda_tta.box.backends.torch_module import ModuleBox
from soda_tta.box.box import Box, Wrapper
from soda_tta.box.input import Input
from soda_tta.box.ledger import Ledger
from soda_tta.box.load import load_box
from soda_tta.box.meter import Meter
from soda_tta.box.price import Price
from soda_tta.box.wrappers.batched import Batched
from soda_tta.box.wrappers.cached import Cached
from soda_tta.box.wrappers.metered import Metered
from soda_tta.box.wrappers.quantised import Quantised
from soda_tta.box.wrappers.recorded import Recorded
from soda_tta.box.wrappers.retrying import Retrying

__all__ = [
    "Batched",
    "Box",
    "Cached",
    "CallableBox",
    "Input",
    "Ledger",
    "Meter",
    "Metered",
    "ModuleBox",
    "OnnxBox",
    "OpenInferenceBox",
    "OpenInferenceGrpcBox",
    "Price",
    "Quantised",
    "Recorded",
    "RestBox",
    "Retrying",
    "TfliteBox",
    "Wrapper",
    "load_box",
]
