"""Where tensors are computed: on the CPU, or on an accelerator that PyTorch finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from soda_tta.errors import SodaError
from soda_tta.types import Array

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

CPU = "cpu"
_default = CPU


def default_device() -> str:
    """The device of adaptors and modules for which none is stated."""
    return _default


@contextmanager
def using_device(name: str) -> Iterator[None]:
    """Use this device by default, for a block.

    Parameters
    ----------
    name : str
        "cpu", or "cuda", "cuda:1", "mps" where PyTorch has it.

    Examples
    --------
    >>> with using_device("cpu"):
    ...     default_device()
    'cpu'
    """
    global _default
    before = _default
    _default = find_device(name)
    try:
        yield
    finally:
        _default = before


def find_device(name: str) -> str:
    """The name of a device that is there; an error lists those that are."""
    if name == CPU:
        return name
    import torch

    present = [CPU]
    present += [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    present += ["mps"] if torch.backends.mps.is_available() else []
    kinds = {each.partition(":")[0] for each in present}
    if name not in present and name not in kinds:
        listed = ", ".join(present)
        raise SodaError(f"{name!r} is not a device of this machine; choose from: {listed}.")
    return name


def device_of(module: Module) -> str:
    """Where a PyTorch module is."""
    held = next(chain(module.parameters(), module.buffers()), None)
    return CPU if held is None else str(held.device)


@contextmanager
def working_on(device: str) -> Iterator[None]:
    """Make constants on the device, and compute in full precision.

    A finite difference is smaller than the rounding of half precision and of TF32.
    """
    import torch

    kind = device.partition(":")[0]
    with ExitStack() as contexts:
        if torch.is_autocast_enabled(CPU) or kind != CPU:
            contexts.enter_context(torch.autocast(CPU, enabled=False))
        if kind != CPU:
            contexts.enter_context(torch.device(device))
        if kind == "cuda":
            contexts.enter_context(torch.autocast(kind, enabled=False))
            contexts.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=False))
        yield


def as_tensor(array: Array, device: str, **options: Any) -> Tensor:
    """An array as a tensor on a device; on the CPU it shares the memory of the array."""
    import torch

    return torch.from_numpy(array).to(device, **options)


def as_array(tensor: Tensor) -> Array:
    """The values of a tensor on any device."""
    array: Array = tensor.detach().cpu().numpy()
    return array
