"""Tensors on other devices, tested on a CPU: on the meta device, where no operation may mix."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import soda_tta
from soda_tta.adaptors import Bank, PaperNetwork
from soda_tta.adaptors.fused import fused_perturbations
from soda_tta.box import Input, ModuleBox
from soda_tta.devices import (
    as_array,
    default_device,
    device_of,
    find_device,
    using_device,
    working_on,
)
from soda_tta.errors import SodaError

META = "meta"  # tensors without values, on a device of their own


class OneDevice(TorchDispatchMode):
    """Refuses every operation whose tensors are not all on the meta device.

    A tensor without dimensions may come from anywhere, as on every device.
    """

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        tensors = torch.utils._pytree.tree_leaves((args, kwargs or {}))
        devices = {
            str(each.device) for each in tensors if isinstance(each, torch.Tensor) and each.ndim
        }
        moves = "to_copy" in str(operation)
        assert moves or devices <= {META} or devices == {"cpu"}, f"{operation} mixes {devices}"
        return operation(*args, **(kwargs or {}))


ADAPTORS = {
    "bank": lambda: Bank().build(),
    "network": lambda: PaperNetwork(width=4).build(0),
    "deep network": lambda: PaperNetwork(width=4, blocks=1, pairs=1, dropout=0.1).build(0),
}


@pytest.mark.parametrize("name", ADAPTORS)
def test_an_adaptor_stays_on_its_device_with_its_gradient(name: str) -> None:
    adaptor = ADAPTORS[name]()
    images = torch.empty((2, 3, 16, 16), device=META)
    theta = torch.zeros(len(adaptor.parameters), device=META, requires_grad=True)
    with working_on(META), OneDevice():
        adapted = adaptor.differentiable(images, theta, 3)
        adapted.sum().backward()
    assert adapted.device.type == theta.grad.device.type == META


def test_the_fast_form_of_the_network_stays_on_its_device() -> None:
    count = len(PaperNetwork(width=4).build(0).parameters)
    with working_on(META), OneDevice():
        images = torch.empty((2, 3, 16, 16), device=META)
        thetas = torch.zeros((3, count), device=META)
        assert fused_perturbations(images, thetas, 4, "hardswish").device.type == META


@pytest.mark.parametrize("facts", [{}, {"mean": 0.5, "channels": "BGR", "turn": 90}])
def test_a_module_is_queried_where_it_is(facts: dict) -> None:
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4)).to(META)
    box = ModuleBox(module, input=Input(**facts), logits=True)
    assert device_of(box.module) == META
    with OneDevice():
        rows = box.differentiable(torch.zeros((2, 3, 8, 8)))  # from the CPU: moved there
    assert rows.device.type == META


def test_candidates_are_the_same_wherever_the_device_is_stated(images: np.ndarray) -> None:
    adaptor = Bank().build()
    theta = np.full((1, len(adaptor.parameters)), 0.1, np.float32)
    with using_device("cpu"):
        np.testing.assert_array_equal(
            adaptor.on("cpu").candidates(images, theta), adaptor.candidates(images, theta)
        )


def test_an_absent_device_is_refused_and_those_present_are_named() -> None:
    absent = "mps" if not torch.backends.mps.is_available() else "cuda"
    with pytest.raises(SodaError, match=rf"'{absent}' is not a device of this machine; .*: cpu"):
        find_device(absent)
    with pytest.raises(SodaError, match="choose from"), using_device("gpu"):
        pass
    with pytest.raises(SodaError, match="choose from"):
        Bank().build().on("gpu")
    assert default_device() == "cpu"


@pytest.mark.parametrize("name", ADAPTORS)
def test_no_mixed_precision_around_a_finite_difference(name: str, images: np.ndarray) -> None:
    adaptor = ADAPTORS[name]()
    thetas = np.stack([adaptor.parameters, adaptor.parameters + np.float32(1e-3)])
    expected = adaptor.candidates(images[:4], thetas)
    with torch.autocast("cpu", dtype=torch.float16):
        np.testing.assert_array_equal(adaptor.candidates(images[:4], thetas), expected)


def test_a_module_is_queried_in_full_precision(images: np.ndarray) -> None:
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4))
    box = ModuleBox(module, logits=True)
    expected = box(images)
    with torch.autocast("cpu", dtype=torch.float16):
        np.testing.assert_array_equal(box(images), expected)


# Everything that may run on an accelerator crosses to numpy and back in `devices.py` only.
PORTABLE = (
    *("adaptors/bank.py", "engine/step.py", "box/backends/torch_module.py"),
    *("methods/office_home.py", "methods/input_space.py"),
    *("methods/yardsticks/batch_statistics.py", "methods/yardsticks/model_adaptation.py"),
)


@pytest.mark.parametrize("file", PORTABLE)
def test_there_is_no_hidden_way_to_the_cpu(file: str) -> None:
    text = (Path(soda_tta.__file__).parent / file).read_text()
    hidden = [line for line in text.splitlines() if re.search(r"\.cpu\(\)|\.numpy\(\)", line)]
    assert not hidden
    assert as_array(torch.ones(2, requires_grad=True)).tolist() == [1, 1]
